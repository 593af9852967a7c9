#!/usr/bin/env python3
"""What torch.topk takes on a GPU for what `cuda_kernels` times as "add_and_topk": r += scale * g; the k largest |r|.

Prints JSON lines of the same form (name, n, density, seconds: median, ratio to the floor, floor, machine). The floor is
12 n bytes at the bandwidth of a copy of the same length. "torch_topk" is the call alone, on magnitudes that are there
already; "torch_error_feedback" the whole step as one writes it in PyTorch. Needs a PyTorch with CUDA, and a GPU.

  torch_topk.py [MOST_VALUES [REPEATS]]        defaults: 138000000 50
"""
import json
import statistics
import sys

import torch


def median_seconds(work, repeats, warmup=3):
    for _ in range(warmup):
        work()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seconds = []
    for _ in range(repeats):
        start.record()
        work()
        stop.record()
        stop.synchronize()
        seconds.append(1e-3 * start.elapsed_time(stop))
    return statistics.median(seconds)


def measure(n, repeats):
    """Gradient-like values: normal ones whose scale is log-normal over stretches of 4096, as in cuda_kernels."""
    torch.manual_seed(1)
    scale = torch.randn(n // 4096 + 1, device="cuda").exp().repeat_interleave(4096)[:n]
    gradient = torch.randn(n, device="cuda") * scale
    residual = torch.zeros(n, device="cuda")
    bandwidth = 8 * n / median_seconds(lambda: residual.copy_(gradient), repeats)
    for density in (0.001, 0.01, 0.1):
        k = int(n * density)
        magnitudes = gradient.abs()

        def step():
            residual.add_(gradient, alpha=0.5)
            positions = residual.abs().topk(k, sorted=False).indices
            values = residual[positions]
            residual[positions] = 0
            return values

        for name, work in (("torch_topk", lambda: magnitudes.topk(k, sorted=False)), ("torch_error_feedback", step)):
            seconds = median_seconds(work, repeats)
            floor = 12 * n / bandwidth
            print(json.dumps({"name": name, "n": n, "density": density, "seconds": seconds, "ratio": seconds / floor,
                              "floor": "12n", "floor_s": floor, "copy_bytes_per_s": bandwidth,
                              "machine": torch.cuda.get_device_name()}), flush=True)


def main():
    most = int(float(sys.argv[1])) if len(sys.argv) > 1 else 138_000_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    for n in (1_000_000, 10_000_000, 25_000_000, 138_000_000):
        if n <= most:
            measure(n, repeats)


if __name__ == "__main__":
    main()
