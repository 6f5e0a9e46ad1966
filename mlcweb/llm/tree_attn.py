"""Attention of trees of tokens, several continuations of a text at once: each token sees those that
it descends from. attention.py has the functions."""

from mlcweb.llm.attention import tree_attn, tree_attn_with_paged_kv_cache

tree_attn_cpu = tree_attn
tree_attn_with_paged_kv_cache_cpu = tree_attn_with_paged_kv_cache

__all__ = [
    "tree_attn",
    "tree_attn_cpu",
    "tree_attn_with_paged_kv_cache",
    "tree_attn_with_paged_kv_cache_cpu",
]
