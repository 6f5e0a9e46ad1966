"""Language models: position embeddings, and a cache of keys and values in pages. `mlcweb.relax`
has it as `relax.frontend.nn.llm`.

- position_embedding.py: RoPE; rope_frequency.py has its angles.
- kv_cache.py: the cache as an object of models. attention.py and pages.py have the functions of
  TensorIR that it is made with, tree_attn.py those for trees of tokens; threads.py writes them for
  GPUs. `mlcweb/relax_vm/paged_kv_cache.py` is the cache when a model runs.
"""

from mlcweb.llm import kv_cache, position_embedding
from mlcweb.llm.kv_cache import PagedKVCache
from mlcweb.llm.position_embedding import llama_rope
from mlcweb.llm.tree_attn import tree_attn

__all__ = ["PagedKVCache", "kv_cache", "llama_rope", "position_embedding", "tree_attn"]
