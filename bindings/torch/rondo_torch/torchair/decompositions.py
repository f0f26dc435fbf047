# SPDX-License-Identifier: Apache-2.0
"""Which of ATen's operators are taken apart before they are converted."""
import math

import torch

from .registry import BUILT_IN, REGISTERED

aten = torch.ops.aten

# Beside PyTorch's core set.
MORE = ("_scaled_dot_product_flash_attention_for_cpu", "addmv", "_fused_rms_norm", "native_batch_norm",
        "_native_batch_norm_legit_functional", "_native_batch_norm_legit", "native_dropout")


def attention(query, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask, mask_type):
    """Of a sequence to itself. `mask` is true where nothing is looked at: [length, length] of type 0, [batch, length] of
    type 1."""
    batch, length, width = query.shape
    parts = torch.nn.functional.linear(query, qkv_weight, qkv_bias).view(batch, length, 3, heads, width // heads)
    q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
    scores = (q / math.sqrt(width // heads)) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(mask if mask_type == 0 else mask.view(batch, 1, 1, length), float("-inf"))
    seen = torch.softmax(scores, -1) @ v
    return torch.nn.functional.linear(seen.transpose(1, 2).reshape(batch, length, width), out_weight, out_bias)


def transformer_encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first,
                              eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1,
                              ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):
    """What torch.nn.TransformerEncoderLayer becomes in evaluation."""
    functional = torch.nn.functional
    if src.is_nested or (mask is not None and (mask.dtype != torch.bool or mask_type not in (0, 1))):
        return NotImplemented

    def norm(x, weight, bias):
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    def attend(x):
        return attention(x, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)

    def feed(x):
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        inner = functional.gelu(inner) if use_gelu else torch.relu(inner)
        return functional.linear(inner, ffn_weight_2, ffn_bias_2)

    if norm_first:
        src = src + attend(norm(src, norm_weight_1, norm_bias_1))
        return src + feed(norm(src, norm_weight_2, norm_bias_2))
    src = norm(src + attend(src), norm_weight_1, norm_bias_1)
    return norm(src + feed(src), norm_weight_2, norm_bias_2)


def native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                mask=None, need_weights=True, average_attn_weights=True, mask_type=None):
    """What torch.nn.MultiheadAttention becomes in evaluation, where the weights are not asked for."""
    if need_weights or query is not key or key is not value or query.is_nested:
        return NotImplemented
    if mask is not None and (mask.dtype != torch.bool or mask_type not in (0, 1)):
        return NotImplemented
    out = attention(query, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)
    return out, query.new_empty(0)


def table(custom):
    """For AOTAutograd: what has a converter stays as it is."""
    made = dict(torch._decomp.core_aten_decompositions().items())
    made.update(torch._decomp.get_decompositions([getattr(aten, name) for name in MORE if hasattr(aten, name)]))
    for name, function in (("_transformer_encoder_layer_fwd", transformer_encoder_layer),
                           ("_native_multi_head_attention", native_multi_head_attention)):
        if hasattr(aten, name):
            made[getattr(aten, name).default] = function
    for known in (BUILT_IN, REGISTERED):
        for overload in known:
            made.pop(overload, None)
    made.update(custom)
    return made
