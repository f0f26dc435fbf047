# SPDX-License-Identifier: Apache-2.0
"""Which of ATen's operators are taken apart before they are converted."""
import math

import torch

from .registry import BUILT_IN, REGISTERED

aten = torch.ops.aten

# Beside PyTorch's core set.
MORE = ("addmv", "_fused_rms_norm", "native_batch_norm",
        "_native_batch_norm_legit_functional", "_native_batch_norm_legit")
# PyTorch draws these numbers, and they are those that eager PyTorch draws.
KEPT = ("native_dropout", "bernoulli")


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


def _scores(query, key, causal, mask, scale):
    """What a softmax makes the weights of, and the scale."""
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)) * scale
    if causal:
        seen = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).tril()
        scores = torch.where(seen, scores, float("-inf"))
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores, scale


def _weights(scores, logsumexp):
    """Of a row that sees nothing, all are 0."""
    return torch.exp(scores - torch.where(logsumexp == float("-inf"), 0.0, logsumexp).unsqueeze(-1))


def flash_attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    """PyTorch's own decomposition gives another second result than the operator, which its backward could not use."""
    if dropout_p:
        return NotImplemented
    scores, _ = _scores(query, key, is_causal, attn_mask, scale)
    logsumexp = torch.logsumexp(scores, -1)
    made = _weights(scores, logsumexp) @ value
    return made.transpose(1, 2).contiguous().transpose(1, 2), logsumexp  # as the operator's result lies


def flash_attention_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None,
                             scale=None):
    if dropout_p:
        return NotImplemented
    scores, scale = _scores(query, key, is_causal, attn_mask, scale)
    weights = _weights(scores, logsumexp)
    of_weights = grad_out @ value.transpose(-2, -1) - (grad_out * out).sum(-1, keepdim=True)
    of_scores = weights * of_weights * scale
    return of_scores @ key, of_scores.transpose(-2, -1) @ query, weights.transpose(-2, -1) @ grad_out


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
                           ("_native_multi_head_attention", native_multi_head_attention),
                           ("_scaled_dot_product_flash_attention_for_cpu", flash_attention),
                           ("_scaled_dot_product_flash_attention_for_cpu_backward", flash_attention_backward)):
        if hasattr(aten, name):
            made[getattr(aten, name).default] = function
    for name in KEPT:
        for overload in getattr(aten, name).overloads():
            made.pop(getattr(getattr(aten, name), overload), None)
    for known in (BUILT_IN, REGISTERED):
        for overload in known:
            made.pop(overload, None)
    made.update(custom)
    return made
