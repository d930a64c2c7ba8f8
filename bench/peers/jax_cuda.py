#!/usr/bin/env python3
"""JAX on CUDA: jax.lax.while_loop under jax.jit, with XLA's command buffers, where the loop is a conditional node, and
without, where the host reads the flag of each pass."""
import importlib.metadata
import sys

import measure
import on_gpu

ON, OFF = "command buffers on", "command buffers off"
FLAGS = {ON: "--xla_gpu_enable_command_buffer=FUSION,CONDITIONAL,WHILE --xla_gpu_graph_min_graph_size=1",
         OFF: "--xla_gpu_enable_command_buffer="}
PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin")


def rows_of(how):
    import jax
    import jax.numpy as jnp

    passes = on_gpu.PASSES if how == ON else on_gpu.HOST_PASSES
    run = jax.jit(lambda left: jax.lax.while_loop(lambda left: left != 0, lambda left: left - 1, left))
    one_more = jax.jit(lambda x: x + 1)
    x = [jax.device_put(jnp.int32(0))]

    def loop(count):
        left = jax.device_put(jnp.int32(count)).block_until_ready()
        begin = measure.now()
        left = run(left).block_until_ready()
        return measure.now() - begin, int(left) == 0

    def launch():
        x[0] = one_more(x[0])

    loop(1)  # compiles
    launch()
    return [measure.pass_row("C12", passes, loop),
            on_gpu.launch_row(launch, lambda: x[0].block_until_ready(), lambda: int(x[0]))]


def unusable():
    def installed(name):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return None
    return on_gpu.why_none() or (None if any(map(installed, PLUGINS)) else
                                 "jax has no CUDA plugin: pip install jax[cuda13]==0.10.2")


if __name__ == "__main__":
    sys.exit(measure.main("jax on CUDA", "jax", "0.10.2", __file__, [
        measure.Configuration(how, 0, {"JAX_PLATFORMS": "cuda", "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                                       "XLA_FLAGS": flags}) for how, flags in FLAGS.items()],
        rows_of, on_gpu.no_checkpoints("JAX"), unusable))
