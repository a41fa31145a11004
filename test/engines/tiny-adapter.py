"""Writes a LoRA adapter of rank 8 for the tiny model of tiny-model.py; it changes no output.

Usage: python tiny-adapter.py FOLDER.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

RANK = 8
HIDDEN = 256
# Outputs of the projections: four heads of 64 for queries, two for values.
OUTPUTS = {"q_proj": 256, "v_proj": 128}
LAYERS = 2


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for layer in range(LAYERS):
        for name, outputs in OUTPUTS.items():
            path = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors[f"{path}.lora_A.weight"] = torch.zeros(RANK, HIDDEN)
            tensors[f"{path}.lora_B.weight"] = torch.zeros(outputs, RANK)
    save_file(tensors, str(folder / "adapter_model.safetensors"))
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny",
        "r": RANK,
        "lora_alpha": RANK,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(OUTPUTS),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))


main(pathlib.Path(sys.argv[1]))
