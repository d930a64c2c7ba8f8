#!/usr/bin/env python3
"""JAX on the CPU: jax.lax.while_loop under jax.jit. XLA compiles a small loop with its body into one function, like a C
compiler. A loop with more than 1 KiB of state runs pass by pass. Both are measured. JAX has no row for a chain of small
tasks, since XLA merges them into one."""
import sys

import measure

PASSES = {"the loop is compiled as one function": 100000, "a larger state beside, and XLA runs the passes": 2000}
BESIDE = 4096  # bytes


def rows_of(how):
    import jax
    import jax.numpy as jnp

    whole, _ = PASSES

    @jax.jit
    def small(left):
        return jax.lax.while_loop(lambda left: left != 0, lambda left: left - 1, left)

    @jax.jit
    def large(left, beside):
        return jax.lax.while_loop(lambda state: state[0] != 0, lambda state: (state[0] - 1, state[1] + 1),
                                  (left, beside))

    beside = jnp.zeros(BESIDE // 4, jnp.int32)

    def loop(passes):
        left = jax.device_put(jnp.int32(passes)).block_until_ready()
        begin = measure.now()
        if how == whole:
            left = small(left).block_until_ready()
            more = passes
        else:
            left, seen = jax.block_until_ready(large(left, beside))
            more = int(seen[-1])
        return measure.now() - begin, int(left) == 0 and more == passes

    loop(1)  # compiles
    return [measure.pass_row("F8", PASSES[how], loop)]


FUSED = "XLA makes one function of such tasks"
ABSENT = {("F1", "one more task n=1"): FUSED, ("F1", "one more task n=1024"): FUSED,
          ("F2", "one more task n=1048576"): FUSED,
          ("F8", "silent checkpoint"): "JAX has no checkpoints", ("F8", "yield and resume"): "JAX has no checkpoints",
          ("F8", "yield and resume, all of it"): "JAX has no checkpoints",
          ("F7", "two sections n=1"): FUSED, ("F7", "two sections n=512"): FUSED}

if __name__ == "__main__":
    sys.exit(measure.main("jax", "jax", "0.10.2", __file__,
                          [measure.Configuration(how, 0, {"JAX_PLATFORMS": "cpu"}) for how in PASSES], rows_of, ABSENT))
