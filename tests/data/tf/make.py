#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the frozen TensorFlow graphs of this folder, with inputs and TensorFlow's own results: model.pb, and
test_data_set_0/{input,output}_N.pb as ONNX TensorProtos, in the order of the graph's placeholders and results.

    python3 -m venv VENV && VENV/bin/pip install tensorflow-cpu && VENV/bin/python tests/data/tf/make.py [NAME...]

Written with TensorFlow 2.21.0. Only this script needs it: what it makes is committed."""
import os
import pathlib
import shutil
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0")
import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).resolve().parent
raw = tf.raw_ops
ONNX = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
        "float64": 11, "uint32": 12, "uint64": 13}
GRAPHS = {}


def graph(function):
    """A graph is a function from a Draw, which makes placeholders, to a list of results."""
    GRAPHS[function.__name__] = function
    return function


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.feed = []

    def give(self, value, shape=None, dtype=None):
        """A placeholder that is fed `value`; shape may leave sizes open."""
        value = np.asarray(value, dtype)
        name = f"in{len(self.feed)}"
        place = tf.compat.v1.placeholder(value.dtype, value.shape if shape is None else shape, name=name)
        self.feed.append((place.name, value))
        return place

    def real(self, *shape, low=-2.0, high=2.0, dtype=np.float32, open=()):
        known = [None if axis in open else size for axis, size in enumerate(shape)]
        return self.give(self.random.uniform(low, high, shape).astype(dtype), known)

    def whole(self, *shape, low=-5, high=6, dtype=np.int32, open=()):
        known = [None if axis in open else size for axis, size in enumerate(shape)]
        return self.give(self.random.integers(low, high, shape).astype(dtype), known)

    def constant(self, *shape, scale=0.5):
        return tf.constant(self.random.uniform(-scale, scale, shape).astype(np.float32))


# ---------------------------------------------------------------------------------------------------- elementwise


@graph
def unary_real(d):
    x = d.real(3, 4)
    return [getattr(raw, name)(**{key: x}) for name, key in (
        ("Abs", "x"), ("Neg", "x"), ("Exp", "x"), ("Sigmoid", "x"), ("Tanh", "x"), ("Relu", "features"),
        ("Relu6", "features"), ("Elu", "features"), ("Selu", "features"), ("Softplus", "features"),
        ("Softsign", "features"), ("Square", "x"), ("Sin", "x"), ("Cos", "x"), ("Atan", "x"), ("Sinh", "x"), ("Cosh", "x"),
        ("Asinh", "x"), ("Erf", "x"), ("Erfc", "x"), ("Ceil", "x"), ("Floor", "x"), ("Rint", "x"), ("Round", "x"),
        ("Sign", "x"), ("LeakyRelu", "features"))] + [raw.LeakyRelu(features=x, alpha=0.7)]


@graph
def unary_domains(d):
    inside, above, large = d.real(7, low=-0.95, high=0.95), d.real(7, low=0.05, high=4), d.real(7, low=1.05, high=4)
    return [raw.Tan(x=inside), raw.Asin(x=inside), raw.Acos(x=inside), raw.Atanh(x=inside), raw.Log(x=above),
            raw.Sqrt(x=above), raw.Rsqrt(x=above), raw.Reciprocal(x=above), raw.Inv(x=above), raw.Acosh(x=large)]


@graph
def near_zero(d):
    """Where the naive forms of expm1 and log1p lose their digits."""
    x = d.give([-0.999, -1e-3, -1e-6, 0, 1e-7, 1e-5, 1e-2, 0.4, 0.6, 3, 60, -30], dtype=np.float32)
    return [raw.Expm1(x=x), raw.Log1p(x=x)]


@graph
def special_numbers(d):
    x = d.give([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -2.5, 0.5, 1.5], dtype=np.float32)
    return [raw.IsNan(x=x), raw.IsInf(x=x), raw.IsFinite(x=x), raw.Round(x=x), raw.Relu(features=x), raw.Sign(x=x[3:])]


@graph
def binary_real(d):
    a, b = d.real(2, 1, 4), d.real(3, 1, low=0.5, high=2)
    return [raw.Add(x=a, y=b), raw.AddV2(x=a, y=b), raw.Sub(x=a, y=b), raw.Mul(x=a, y=b), raw.RealDiv(x=a, y=b),
            raw.Div(x=a, y=b), raw.FloorDiv(x=a, y=b), raw.FloorMod(x=a, y=b), raw.TruncateMod(x=a, y=b), raw.Mod(x=a, y=b),
            raw.Maximum(x=a, y=b), raw.Minimum(x=a, y=b), raw.SquaredDifference(x=a, y=b), raw.Pow(x=b, y=a),
            raw.ClipByValue(t=a, clip_value_min=-0.5, clip_value_max=tf.constant(0.75)), raw.AddN(inputs=[a, a, a])]


@graph
def binary_whole(d):
    a, b = d.whole(3, 5), d.give([-3, -2, 2, 3, 4], dtype=np.int32)
    u, v = d.whole(4, low=0, high=255, dtype=np.uint8), d.whole(4, low=0, high=255, dtype=np.uint8)
    return [raw.Add(x=a, y=b), raw.Sub(x=a, y=b), raw.Mul(x=a, y=b), raw.FloorDiv(x=a, y=b), raw.TruncateDiv(x=a, y=b),
            raw.FloorMod(x=a, y=b), raw.TruncateMod(x=a, y=b), raw.Maximum(x=a, y=b), raw.Minimum(x=a, y=b), raw.Abs(x=a),
            raw.Neg(x=a), raw.Sign(x=a), raw.BitwiseAnd(x=u, y=v), raw.BitwiseOr(x=u, y=v), raw.BitwiseXor(x=u, y=v),
            raw.Invert(x=u)]


@graph
def compare(d):
    a, b = d.whole(3, 4, high=3, low=-2), d.whole(4, high=3, low=-2)
    p, q = raw.Less(x=a, y=b), raw.GreaterEqual(x=a, y=0)
    return [p, q, raw.LessEqual(x=a, y=b), raw.Greater(x=a, y=b), raw.Equal(x=a, y=b), raw.NotEqual(x=a, y=b),
            raw.LogicalAnd(x=p, y=q), raw.LogicalOr(x=p, y=q), raw.LogicalNot(x=p)]


@graph
def no_nan(d):
    a, b = d.real(6), d.give([1, 0, -2, 0, 0.5, 3], dtype=np.float32)
    return [raw.DivNoNan(x=a, y=b), raw.MulNoNan(x=raw.Log(x=raw.Abs(x=b)), y=b)]


@graph
def select(d):
    a, b = d.real(3, 4), d.real(3, 4)
    rows, one, each = d.give([True, False, True]), d.give(True), d.whole(3, 4) > 0
    return [raw.Select(condition=rows, x=a, y=b), raw.Select(condition=one, x=a, y=b), raw.Select(condition=each, x=a, y=b),
            raw.SelectV2(condition=each, t=a, e=tf.constant(0.0)), raw.SelectV2(condition=tf.reshape(rows, [3, 1]), t=a, e=b)]


@graph
def cast(d):
    x, n = d.give([-2.7, -0.5, 0, 0.5, 3.9], dtype=np.float32), d.whole(5, dtype=np.int64)
    return [raw.Cast(x=x, DstT=kind) for kind in (tf.int32, tf.int64, tf.float64, tf.bool)] + [
        raw.Cast(x=n, DstT=kind) for kind in (tf.float32, tf.int8, tf.bool, tf.int32)]


# ----------------------------------------------------------------------------------------------------- reductions


@graph
def reduce(d):
    x = d.real(2, 3, 4, open=[0])
    return [raw.Sum(input=x, axis=[1]), raw.Mean(input=x, axis=[-1, 0], keep_dims=True), raw.Max(input=x, axis=2),
            raw.Min(input=x, axis=[0, 1, 2]), raw.Prod(input=x, axis=[0]), raw.EuclideanNorm(input=x, axis=[1, 2]),
            raw.Sum(input=x, axis=tf.constant([], tf.int32)), raw.L2Loss(t=x), raw.ArgMax(input=x, dimension=1),
            raw.ArgMin(input=x, dimension=-1, output_type=tf.int32)]


@graph
def reduce_bools(d):
    x = d.whole(4, 5, low=0, high=2) > 0
    return [raw.All(input=x, axis=[1]), raw.Any(input=x, axis=[1], keep_dims=True), raw.All(input=x, axis=[0]),
            raw.Any(input=x, axis=[0, 1])]


@graph
def softmax(d):
    x = d.real(2, 3, 5)
    return [raw.Softmax(logits=x), raw.LogSoftmax(logits=x), raw.Cumsum(x=x, axis=1), raw.Cumprod(x=x, axis=2),
            raw.Cumsum(x=x, axis=-1, exclusive=True, reverse=True)]


# ------------------------------------------------------------------------------------------------------- products


@graph
def matmul(d):
    a, b, c = d.real(3, 4, open=[0]), d.real(4, 5), d.real(5, 3)
    return [raw.MatMul(a=a, b=b), raw.MatMul(a=b, b=a, transpose_a=True, transpose_b=True),
            raw.MatMul(a=a, b=c, transpose_a=True, transpose_b=True), raw.MatMul(a=c, b=d.constant(5, 2), transpose_a=True)]


@graph
def batch_matmul(d):
    a, b, c = d.real(2, 3, 4), d.real(2, 4, 5), d.real(1, 5, 4)
    return [raw.BatchMatMul(x=a, y=b), raw.BatchMatMulV2(x=a, y=c, adj_y=True), raw.BatchMatMulV2(x=a, y=a, adj_x=True),
            raw.BatchMatMulV3(x=a, y=b, Tout=tf.float32)]


@graph
def einsum(d):
    a, b, c, e = d.real(2, 3, 4), d.real(4, 2, 3), d.real(2, 3, 2, 4), d.real(2, 5, 2, 4)
    return [raw.Einsum(inputs=[a, b], equation="abc,cde->abde"), raw.Einsum(inputs=[c, e], equation="aecd,abcd->acbe"),
            raw.Einsum(inputs=[a, a], equation="abc,abc->ab"), raw.Einsum(inputs=[a], equation="abc->ca"),
            raw.Einsum(inputs=[a, b], equation="abc,cde->bd"), raw.Einsum(inputs=[a[0], a[1]], equation="ij,kj->ik")]


# --------------------------------------------------------------------------------------------------------- shapes


@graph
def reshape(d):
    x = d.real(2, 3, 4, open=[0])
    size = raw.Shape(input=x)
    batch = raw.StridedSlice(input=size, begin=[0], end=[1], strides=[1], shrink_axis_mask=1)
    return [raw.Reshape(tensor=x, shape=[-1, 6]), raw.Reshape(tensor=x, shape=raw.Pack(values=[batch, 12])),
            raw.ExpandDims(input=x, axis=1), raw.ExpandDims(input=x, axis=-1), raw.Transpose(x=x, perm=[2, 0, 1]),
            raw.Squeeze(input=raw.ExpandDims(input=x, axis=0), axis=[0]), raw.Squeeze(input=tf.reshape(x, [1, -1, 1])),
            size, raw.Shape(input=x, out_type=tf.int64), raw.Size(input=x), raw.Rank(input=x),
            raw.BroadcastTo(input=tf.reshape(x, [1, 24]), shape=[2, 24])]


@graph
def joining(d):
    a, b = d.real(2, 3), d.real(2, 2)
    parts = raw.SplitV(value=a, size_splits=[1, -1], axis=1, num_split=2)
    halves = raw.Split(axis=0, value=a, num_split=2)
    return [raw.ConcatV2(values=[a, b, a], axis=-1), raw.Concat(concat_dim=1, values=[b, a]),
            raw.Pack(values=[a, a], axis=2), raw.Pack(values=[a]), *raw.Unpack(value=a, num=3, axis=1), *parts, *halves,
            raw.Tile(input=b, multiples=[2, 3])]


@graph
def padding(d):
    a = d.real(3, 4)
    return [raw.Pad(input=a, paddings=[[1, 0], [2, 3]]), raw.PadV2(input=a, paddings=[[0, 2], [1, 1]], constant_values=7.5),
            raw.MirrorPad(input=a, paddings=[[2, 1], [0, 3]], mode="REFLECT")]


@graph
def filling(d):
    x, n = d.real(2, 3, open=[0, 1]), d.give(3, dtype=np.int32)
    return [raw.Fill(dims=raw.Shape(input=x), value=2.5), raw.ZerosLike(x=x), raw.OnesLike(x=x), raw.Fill(dims=[2, 2], value=n)]


@graph
def ranges(d):
    x = d.real(4, open=[0])
    size = raw.Size(input=x)
    return [raw.Range(start=0, limit=size, delta=1), raw.Cast(x=raw.Range(start=1, limit=9, delta=3), DstT=tf.float32) + 0.5,
            raw.Mul(x=x, y=raw.Cast(x=raw.Range(start=size, limit=0, delta=-1), DstT=tf.float32))]


@graph
def strided_slice(d):
    x = d.real(4, 5, 6, open=[0])
    return [x[1], x[-1], x[1:3], x[:, 2:], x[::2, ::-1], x[..., 1], x[..., -2:, 0], x[1, ..., 2:4], x[:, tf.newaxis, 1],
            x[tf.newaxis, ..., tf.newaxis], x[0:1, :, 5:1:-2], x[..., tf.newaxis, 3], x[-3:-1, -2, tf.newaxis, ::3],
            x[3:0:-1, 4:1:-1]]


@graph
def strided_slice_computed(d):
    """Bounds that come from shapes."""
    x, y = d.real(4, 6, open=[0, 1]), d.real(2, 3, open=[0, 1])
    n = raw.Shape(input=y)
    return [x[:n[0], n[1]:], x[n[0]], x[n[0]:, tf.newaxis, n[1]], x[..., :n[1]], x[n[1]:n[0] - 2:-1]]


@graph
def slices(d):
    x = d.real(4, 5)
    return [raw.Slice(input=x, begin=[1, 2], size=[2, -1]), raw.Slice(input=x, begin=[0, 0], size=[-1, 3]),
            raw.ReverseV2(tensor=x, axis=[1]), raw.ReverseV2(tensor=x, axis=[0, -1]),
            raw.MatrixBandPart(input=x, num_lower=1, num_upper=0), raw.MatrixBandPart(input=x, num_lower=-1, num_upper=1),
            raw.MatrixBandPart(input=x, num_lower=0, num_upper=-1)]


@graph
def gather(d):
    x, i, pairs = d.real(3, 4, 5), d.give([[2, 0], [1, 1]], dtype=np.int32), d.give([[0, 1], [2, 3]], dtype=np.int64)
    rows = d.give([[0, 3], [1, 1], [2, 0]], dtype=np.int64)
    return [raw.GatherV2(params=x, indices=i, axis=0), raw.GatherV2(params=x, indices=i, axis=2),
            raw.GatherV2(params=x, indices=i, axis=-2), raw.Gather(params=x, indices=i),
            raw.GatherV2(params=x, indices=rows, axis=1, batch_dims=1), raw.GatherNd(params=x, indices=pairs),
            raw.ScatterNd(indices=tf.constant([[1], [3], [1]]), updates=tf.constant([1.0, 2.0, 4.0]), shape=[5])]


@graph
def one_hot(d):
    i, u = d.give([[0, 2, -1], [3, 1, 9]], dtype=np.int32), d.give([1, 0, 7], dtype=np.uint8)
    x = d.real(3, 6)
    top = raw.TopKV2(input=x, k=3)
    return [raw.OneHot(indices=i, depth=4, on_value=1.0, off_value=0.0),
            raw.OneHot(indices=i, depth=3, on_value=5, off_value=-1, axis=0),
            raw.OneHot(indices=u, depth=2, on_value=True, off_value=False), top.values, top.indices]


# ------------------------------------------------------------------------------------------------------- networks


@graph
def conv_same(d):
    x = d.real(2, 7, 6, 3, open=[0])
    return [raw.Conv2D(input=x, filter=d.constant(3, 3, 3, 4), strides=[1, 2, 2, 1], padding="SAME"),
            raw.Conv2D(input=x, filter=d.constant(2, 2, 3, 2), strides=[1, 1, 1, 1], padding="SAME"),
            raw.Conv2D(input=x, filter=d.constant(3, 2, 3, 2), strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1])]


@graph
def conv_valid(d):
    x = d.real(1, 6, 7, 2)
    return [raw.Conv2D(input=x, filter=d.constant(3, 2, 2, 3), strides=[1, 2, 1, 1], padding="VALID"),
            raw.Conv2D(input=x, filter=d.constant(3, 3, 2, 3), strides=[1, 1, 1, 1], padding="EXPLICIT",
                       explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])]


@graph
def depthwise(d):
    x = d.real(1, 6, 5, 3)
    return [raw.DepthwiseConv2dNative(input=x, filter=d.constant(3, 3, 3, 2), strides=[1, 1, 1, 1], padding="SAME"),
            raw.DepthwiseConv2dNative(input=x, filter=d.constant(2, 2, 3, 1), strides=[1, 2, 2, 1], padding="VALID")]


@graph
def pools(d):
    x = d.real(2, 5, 7, 2)
    window = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1]}
    return [raw.MaxPool(input=x, padding="SAME", **window), raw.MaxPool(input=x, padding="VALID", **window),
            raw.AvgPool(value=x, padding="SAME", **window), raw.AvgPool(value=x, padding="VALID", **window)]


@graph
def batch_norm(d):
    x = d.real(2, 3, 4, 5)
    scale, offset, mean = d.constant(5), d.constant(5), d.constant(5)
    variance = tf.constant(d.random.uniform(0.2, 2, 5).astype(np.float32))
    return [raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False,
                                 epsilon=0.01).y,
            raw.FusedBatchNorm(x=x, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False).y,
            raw.BiasAdd(value=x, bias=offset), raw.LRN(input=x, depth_radius=1, bias=1.5, alpha=0.3, beta=0.6)]


@graph
def depth_and_space(d):
    x = d.real(2, 2, 3, 8, open=[0])
    y = raw.DepthToSpace(input=x, block_size=2)
    return [y, raw.SpaceToDepth(input=y, block_size=2)]


@graph
def image_model(d):
    """Layers of a small classifier, between which nothing is turned."""
    x = d.real(2, 8, 8, 3, open=[0])
    y = raw.Conv2D(input=x, filter=d.constant(3, 3, 3, 8), strides=[1, 2, 2, 1], padding="SAME")
    y = raw.Relu6(features=raw.BiasAdd(value=y, bias=d.constant(8)))
    left = raw.DepthwiseConv2dNative(input=y, filter=d.constant(3, 3, 8, 1), strides=[1, 1, 1, 1], padding="SAME")
    left = raw.FusedBatchNormV3(x=left, scale=d.constant(8), offset=d.constant(8), mean=d.constant(8),
                                variance=tf.constant(d.random.uniform(0.2, 2, 8).astype(np.float32)), is_training=False).y
    y = raw.AddV2(x=left, y=y)
    y = raw.ConcatV2(values=[y, raw.MaxPool(input=y, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME")], axis=3)
    y = raw.Pad(input=raw.Mul(x=y, y=tf.constant(0.5)), paddings=[[0, 0], [1, 0], [0, 1], [0, 0]])
    y = raw.Mean(input=y, axis=[1, 2])
    return [raw.Softmax(logits=raw.MatMul(a=y, b=d.constant(16, 5)))]


@graph
def moved(d):
    """What follows a convolution and may or may not keep its channels where they are."""
    x = d.real(2, 4, 3, 2, open=[0])
    y = raw.Conv2D(input=x, filter=d.constant(2, 2, 2, 3), strides=[1, 1, 1, 1], padding="SAME")
    rows = d.real(3, 3)
    return [raw.Mean(input=y, axis=[1]), raw.Sum(input=y, axis=[0, 2]), raw.Max(input=y, axis=[3]),
            raw.Min(input=y, axis=[-2, 1], keep_dims=True), raw.Sum(input=y, axis=[1, 2, 3]), raw.Sum(input=y, axis=[1, 3]),
            raw.Softmax(logits=y),
            raw.ConcatV2(values=[y, y], axis=1), raw.ConcatV2(values=[y, y], axis=-1), raw.AddV2(x=y, y=rows),
            raw.Mul(x=y, y=rows[0]), raw.AddV2(x=y, y=d.constant(2, 1, 3, 1)), raw.Maximum(x=y, y=x[..., :1]),
            raw.Transpose(x=y, perm=[0, 3, 1, 2]), raw.Transpose(x=y, perm=[3, 1, 2, 0]), raw.Shape(input=y),
            raw.Pad(input=y, paddings=[[0, 1], [2, 0], [0, 0], [1, 3]]), raw.Reshape(tensor=y, shape=[-1, 12]), y[..., 1],
            raw.Squeeze(input=raw.MaxPool(input=y, ksize=[1, 4, 3, 1], strides=[1, 1, 1, 1], padding="VALID"), axis=[1, 2]),
            raw.SelectV2(condition=raw.Greater(x=y, y=0.0), t=y, e=raw.Neg(x=y)), raw.AddN(inputs=[y, y])]


@graph
def channels_second(d):
    """Operators that are told that channels come second, and a model's own turns."""
    x = d.real(1, 2, 4, 5)
    turned = raw.Transpose(x=raw.Relu(features=x), perm=[0, 2, 3, 1])
    y = raw.Conv2D(input=turned, filter=d.constant(3, 3, 2, 2), strides=[1, 1, 1, 1], padding="SAME")
    return [raw.Transpose(x=y, perm=[0, 3, 1, 2]), raw.BiasAdd(value=x, bias=d.constant(2), data_format="NCHW"), turned]


def variables(function, *specs):
    """A tf.function with variables, frozen as TensorFlow does it."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    frozen = convert_variables_to_constants_v2(tf.function(function).get_concrete_function(*specs))
    return frozen.graph.as_graph_def()


def dense_model(random):
    w, b = (tf.Variable(random.uniform(-1, 1, shape).astype(np.float32)) for shape in ((6, 5), (5,)))
    v = tf.Variable(random.uniform(-1, 1, (5, 3)).astype(np.float32))
    return (lambda x: tf.nn.log_softmax(tf.matmul(tf.nn.gelu(tf.matmul(x, w) + b, approximate=True), v))), [(4, 6)]


def attention_model(random):
    w = [tf.Variable(random.uniform(-0.5, 0.5, (8, 2, 4)).astype(np.float32)) for _ in range(3)]
    out = tf.Variable(random.uniform(-0.5, 0.5, (2, 4, 8)).astype(np.float32))
    scale, offset = (tf.Variable(random.uniform(0.5, 1, 8).astype(np.float32)) for _ in range(2))

    def run(x):
        q, k, v = (tf.einsum("abc,cde->abde", x, part) for part in w)
        weights = tf.nn.softmax(tf.einsum("aecd,abcd->acbe", k, q) / 2.0)
        y = x + tf.einsum("abcd,cde->abe", tf.einsum("acbe,aecd->abcd", weights, v), out)
        mean, variance = tf.nn.moments(y, [-1], keepdims=True)
        return tf.nn.batch_normalization(y, mean, variance, offset, scale, 1e-3)
    return run, [(2, 5, 8)]


def embedding_model(random):
    table = tf.Variable(random.uniform(-1, 1, (11, 4)).astype(np.float32))
    return (lambda i: tf.reduce_sum(tf.nn.embedding_lookup(table, tf.cast(i, tf.int32)), 1)), [(3, 5)]


def picture_model(random):
    kernel, bias = tf.Variable(random.uniform(-1, 1, (3, 3, 2, 4)).astype(np.float32)), tf.Variable(np.ones(4, np.float32))

    def run(x):
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias))
        return tf.reshape(tf.nn.avg_pool2d(y, 2, 2, "VALID"), [tf.shape(y)[0], -1])
    return run, [(2, 4, 4, 2)]


MODELS = [dense_model, attention_model, embedding_model, picture_model]

# ---------------------------------------------------------------------------------------------------------- files


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def tensor_file(path, value):
    value = np.asarray(value, order="C")
    data = b"".join(b"\x08" + varint(size) for size in value.shape) + b"\x10" + varint(ONNX[value.dtype.name])
    path.write_bytes(data + b"\x4a" + varint(value.nbytes) + value.tobytes())


def write(name, definition, feed, results):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "test_data_set_0").mkdir(parents=True)
    definition.ClearField("library")
    (folder / "model.pb").write_bytes(definition.SerializeToString(deterministic=True))
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session() as session:
            values = session.run(results, dict(feed))
    for kind, tensors in (("input", [value for _, value in feed]), ("output", values)):
        for index, value in enumerate(tensors):
            tensor_file(folder / "test_data_set_0" / f"{kind}_{index}.pb", value)
    print(f"{name}: {len(feed)} inputs, {len(values)} results, {(folder / 'model.pb').stat().st_size} bytes")


def sinks(definition):
    """The results that no node takes, in the file's order: what an import without named outputs gives."""
    taken = {name.split(":")[0] for node in definition.node for name in node.input if not name.startswith("^")}
    return [node.name + ":0" for node in definition.node if node.name not in taken and node.op not in ("NoOp", "Assert")]


def main():
    wanted = sys.argv[1:]
    for name, function in GRAPHS.items():
        if wanted and name not in wanted:
            continue
        draw = Draw(sum(name.encode()))
        with tf.Graph().as_default() as built:
            # Results that are taken elsewhere too are results only through a node of their own.
            for index, value in enumerate(function(draw)):
                tf.identity(value, name=f"out{index}")
        definition = built.as_graph_def()
        write(name, definition, draw.feed, sinks(definition))
    for make in MODELS:
        if wanted and make.__name__ not in wanted:
            continue
        random = np.random.default_rng(7)
        run, shapes = make(random)
        whole = make is embedding_model
        values = [(random.integers(0, 11, shape).astype(np.int64) if whole else random.uniform(-1, 1, shape).astype(np.float32))
                  for shape in shapes]
        open_batch = [tf.TensorSpec([None, *shape[1:]], tf.int64 if whole else tf.float32) for shape in shapes]
        definition = variables(run, *open_batch)
        places = [node.name + ":0" for node in definition.node if node.op == "Placeholder"]
        write(make.__name__, definition, list(zip(places, values)), sinks(definition))


if __name__ == "__main__":
    main()
