"""Writes the tokeniser files of a model as the engine's library loads them.

Usage: python engine-tokeniser.py MODEL FOLDER. The class of a model brings its own pre-tokeniser, which takes the place
of the one in tokenizer.json: who reads that file alone cuts texts into other tokens than the engine.
"""

import pathlib
import shutil
import sys

from transformers import AutoTokenizer


def main(model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    AutoTokenizer.from_pretrained(str(model)).backend_tokenizer.save(str(folder / "tokenizer.json"))
    shutil.copy(model / "tokenizer_config.json", folder / "tokenizer_config.json")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
