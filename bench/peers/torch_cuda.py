#!/usr/bin/env python3
"""PyTorch: torch.cuda.CUDAGraph. It has no loops in graphs. For each pass the host replays a graph and reads its
flag by item()."""
import sys

import measure
import on_gpu


def rows_of(_how):
    import torch

    x, left = (torch.zeros(1, dtype=torch.int32, device="cuda") for _ in range(2))

    def captured(operation):
        side = torch.cuda.Stream()  # captured work must have run once before, on another stream than the capture's
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            operation()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            operation()
        return graph

    one_pass, single = captured(lambda: left.sub_(1)), captured(lambda: x.add_(1))

    def loop(passes):
        left.fill_(passes)
        torch.cuda.synchronize()
        begin = measure.now()
        while True:
            one_pass.replay()
            if left.item() == 0:
                break
        return measure.now() - begin, left.item() == 0

    return [measure.pass_row("C12", on_gpu.HOST_PASSES, loop),
            on_gpu.launch_row(single.replay, torch.cuda.synchronize, x.item)]


if __name__ == "__main__":
    sys.exit(measure.main("torch", "torch", "2.11.0", __file__,
                          [measure.Configuration("graph of one pass, the host reads its flag")], rows_of,
                          on_gpu.no_checkpoints("PyTorch"), on_gpu.why_none))
