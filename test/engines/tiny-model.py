"""Writes a model that vLLM loads with random weights (--load-format dummy): two layers, and a tokeniser with merges.

Usage: python tiny-model.py FOLDER. The tokeniser is trained on the project's documents, so that it cuts them into tokens
of a usual length, and it is the one that the engine's library loads: the class of a model brings its own pre-tokeniser.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4000
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 4096,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "use_sliding_window": False,
}
TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": "<|im_end|>",
    "pad_token": "<pad>",
    "bos_token": None,
    "model_max_length": 8192,
    "clean_up_tokenization_spaces": False,
    "chat_template": TEMPLATE,
}


def tokenizer():
    documents = pathlib.Path(__file__).resolve().parents[2] / "docs"
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train([str(path) for path in sorted(documents.rglob("*.md"))], trainer)
    return made


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))


main(pathlib.Path(sys.argv[1]))
