#!/usr/bin/env python3
"""Measures the layers of a transformer on the GPU at hand, for `npm run fit-step-time`.

    python3 scripts/measure-step-times.py CONFIG FOLDER [--device cuda] [--dtype bfloat16] [--small]
    npm run fit-step-time -- FOLDER --layers N > step-time.json

CONFIG is the config.json of a model of Llama's shape. FOLDER gets dense.csv, per_sequence.csv and attention.csv: times
in microseconds, medians of warm runs, of one layer with random weights. Needs PyTorch. What is measured are PyTorch's
own kernels, one sequence of prompts beside the decoding ones at a time: an engine with fused kernels is faster, so a
profile of the engine itself is better where there is one. `--small` is a grid of two contexts for a look, and for processors.
"""
import argparse
import csv
import json
import os
import statistics
import time

import torch
import torch.nn.functional as F

TOKENS = [1, 16, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048]
SEQUENCES = [1, 16, 64, 128, 256]
CHUNKS = [16, 64, 256, 512, 1024, 2048]
BEFORE = [0, 256, 1024, 4096, 16384]
DECODES = [1, 4, 16, 32, 64, 128, 256]
CONTEXTS = [16, 128, 512, 1024, 2048, 4096, 8192]
MIXED_DECODES = [1, 4, 16, 32, 64, 128]
RUNS = 9
RUNS_SMALL = 3


def settings():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("folder")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch sees no GPU; --device cpu --small measures a processor")
    return given


class Layer:
    """Weights of one layer, and of what stands once in the model."""

    def __init__(self, config, device, dtype):
        self.hidden = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.size = config.get("head_dim") or self.hidden // self.heads
        inner, vocabulary = config["intermediate_size"], config["vocab_size"]
        self.options = {"device": device, "dtype": dtype}
        self.qkv = self.random((self.heads + 2 * self.kv_heads) * self.size, self.hidden)
        self.output = self.random(self.hidden, self.heads * self.size)
        self.gate_up = self.random(2 * inner, self.hidden)
        self.down = self.random(self.hidden, inner)
        self.norm = self.random(self.hidden)
        self.embedding = self.random(vocabulary, self.hidden)

    def random(self, *shape):
        return torch.randn(*shape, **self.options) * 0.02

    def feed_forward(self, x):
        gate, up = F.linear(x, self.gate_up).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, self.down)

    def attention(self, sequences, queries, context):
        """Attention of the last `queries` tokens of each of `sequences` contexts."""
        query = self.random(sequences, self.heads, queries, self.size)
        key = self.random(sequences, self.kv_heads, context, self.size)
        value = self.random(sequences, self.kv_heads, context, self.size)
        mask = None
        if 1 < queries < context:
            rows = torch.arange(context - queries, context, device=query.device).unsqueeze(1)
            mask = torch.arange(context, device=query.device).unsqueeze(0) <= rows
        causal = queries == context and queries > 1
        return lambda: F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=self.kv_heads != self.heads
        )


def microseconds(work, device, runs):
    """Median time of a warm run."""
    times = []
    for run in range(runs + 2):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        if run >= 2:
            times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def write(folder, name, head, rows):
    with open(os.path.join(folder, name), "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(head)
        table.writerows(rows)
    print(f"{name}: {len(rows)} rows")


def dense_rows(layer, tokens, measured):
    for n in tokens:
        x = layer.random(n, layer.hidden)
        attended = layer.random(n, layer.heads * layer.size)
        ids = torch.zeros(n, dtype=torch.long, device=x.device)
        yield ["embedding", n, measured(lambda: F.embedding(ids, layer.embedding))]
        yield ["layernorm", n, measured(lambda: F.rms_norm(x, (layer.hidden,), layer.norm))]
        yield ["qkv", n, measured(lambda: F.linear(x, layer.qkv))]
        yield ["output", n, measured(lambda: F.linear(attended, layer.output))]
        yield ["feed_forward", n, measured(lambda: layer.feed_forward(x))]
        yield ["final_layernorm", n, measured(lambda: F.rms_norm(x, (layer.hidden,), layer.norm))]


def sequence_rows(layer, sequences, measured):
    for n in sequences:
        x = layer.random(n, layer.hidden)
        yield [n, "lm_head", measured(lambda: F.linear(x, layer.embedding).argmax(dim=-1))]


def attention_rows(layer, grid, measured):
    chunks, before, decodes, contexts, mixed = grid
    for chunk in chunks:
        for cached in before:
            prompt = layer.attention(1, chunk, cached + chunk)
            yield [chunk, cached, 0, 0, measured(prompt)]
    for n in decodes:
        for context in contexts:
            decode = layer.attention(n, 1, context)
            yield [0, 0, n, context, measured(decode)]
            if n not in mixed:
                continue
            for chunk in (each for each in chunks if each >= 128):
                prompt = layer.attention(1, chunk, chunk)
                yield [chunk, 0, n, context, measured(lambda: (prompt(), decode()))]


def main():
    given = settings()
    with open(given.config) as file:
        config = json.load(file)
    os.makedirs(given.folder, exist_ok=True)
    layer = Layer(config, given.device, getattr(torch, given.dtype))
    small = given.small

    def measured(work):
        return round(microseconds(work, given.device, RUNS_SMALL if small else RUNS), 2)

    before = BEFORE[:2] if small else BEFORE
    contexts = [16, 512] if small else CONTEXTS
    grid = (CHUNKS, before, DECODES, contexts, MIXED_DECODES)
    with torch.inference_mode():
        dense = list(dense_rows(layer, TOKENS, measured))
        write(given.folder, "dense.csv", ["layer", "tokens", "time_us"], dense)
        rows = list(sequence_rows(layer, SEQUENCES, measured))
        write(given.folder, "per_sequence.csv", ["sequences", "layer", "time_us"], rows)
        attention = list(attention_rows(layer, grid, measured))
        head = ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"]
        write(given.folder, "attention.csv", head, attention)


if __name__ == "__main__":
    main()
