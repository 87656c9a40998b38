"""Times llm-analysis on a grid of layouts, run by its own Python; prints seconds and candidates as JSON: a peer to compare."""

import json
import logging
import sys
import time

logging.disable(logging.CRITICAL)

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis  # noqa: E402
from llm_analysis.config import (  # noqa: E402
    ModelConfig,
    ParallelismConfig,
    get_dtype_config_by_name,
    get_gpu_config_by_name,
)

SHAPE = {"num_layers": 32, "n_head": 32, "hidden_dim": 4096, "vocab_size": 32000, "max_seq_len": 4096, "ffn_embed_dim": 16384}


def measure(count: int) -> dict:
    """Evaluate at least `count` layouts, as its own documentation does it, one after the other."""
    model = ModelConfig(name="7b", num_key_value_heads=32, **SHAPE)
    gpu, dtype = get_gpu_config_by_name("a100-sxm-80gb"), get_dtype_config_by_name("w16a16e16")
    grid = [(tp, pp, mb) for tp in (1, 2, 4, 8) for pp in (1, 2, 4) for mb in (1, 2, 4, 8)]
    done, start = 0, time.perf_counter()
    while done < count:
        for tp, pp, mb in grid:
            layout = ParallelismConfig(tp_size=tp, pp_size=pp, dp_size=8)
            analysis = LLMAnalysis(model, gpu, dtype, layout, flops_efficiency=0.5, hbm_memory_efficiency=0.8)
            analysis.training(
                batch_size_per_gpu=mb,
                gradient_accumulation_steps=4,
                seq_len=2048,
                total_num_tokens=int(2e9),
                activation_recomputation=ActivationRecomputation.FULL,
                ds_zero=DSZeRO.STAGE_1,
                output_dir=None,
            )
            done += 1
    return {"seconds": time.perf_counter() - start, "candidates": done}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
