"""Models of PyTorch, traced and exported, give what PyTorch gives."""

import operator

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend import detach_params
from mlcweb.relax.frontend.torch import TorchError, from_exported_program, from_fx

torch = pytest.importorskip("torch", reason="PyTorch comes with `make test-all`")
from torch import fx, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.relu = nn.Linear(20, 16), nn.ReLU()
        self.last = nn.Linear(16, 10, bias=False)

    def forward(self, x):
        return F.log_softmax(self.last(self.relu(self.first(x))), dim=1)


class Block(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        out = channels * stride
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, groups=channels)
        self.norm2 = nn.BatchNorm2d(out)
        self.down = nn.Conv2d(channels, out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        y += self.down(x)
        return F.relu(y)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 5, 2, 2), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(Block(8, 1), Block(8, 2))
        self.pool, self.last = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 5)

    def forward(self, x):
        x = F.avg_pool2d(self.blocks(self.stem(x)), 2, ceil_mode=True)
        return self.last(torch.flatten(self.pool(x), 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(n, length, self.heads, width // self.heads).transpose(1, 2)
        k = k.view(n, length, self.heads, width // self.heads).permute(0, 2, 3, 1)
        v = v.reshape(n, length, self.heads, -1).transpose(1, 2)
        weights = torch.softmax(torch.matmul(q, k) / (width // self.heads) ** 0.5, dim=-1)
        return self.out((weights @ v).transpose(1, 2).contiguous().view(n, length, width))


class Transformer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(30, width), nn.Parameter(torch.randn(1, 6, width))
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.dense = nn.Sequential(
            nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width), nn.Dropout(0.1)
        )

    def forward(self, words):
        x = self.words(words) + self.places[:, : words.size(1)]
        x = x + self.attention(self.norm1(x))
        x = x + self.dense(self.norm2(x))
        return x[:, 0].mean(dim=-1), x


MODELS = {
    "mlp": (MLP, lambda: torch.randn(3, 20)),
    "cnn": (CNN, lambda: torch.randn(2, 3, 32, 32)),
    "transformer": (Transformer, lambda: torch.randint(0, 30, (2, 6))),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
        lambda: torch.randn(2, 5, 16),
    ),
}


def traced(model, x, **options):
    return from_fx(fx.symbolic_trace(model), [(tuple(x.shape), str(x.dtype))], **options)


def exported(model, x, **options):
    program = torch.export.export(model, (x,))
    return from_exported_program(program, run_ep_decomposition=False, **options)


def decomposed(model, x, **options):
    return from_exported_program(torch.export.export(model, (x,)), **options)


def run(module, *inputs):
    machine = relax.VirtualMachine(relax.build(module, "llvm"), mlcweb.cpu())
    results = machine["main"](*[mlcweb.nd.array(x) for x in inputs])
    return [results] if hasattr(results, "numpy") else list(results)


def seeded(name):
    torch.manual_seed(0)
    model, inputs = MODELS[name]
    model = model().eval()
    for layer in model.modules():  # moments that are not those of a fresh layer
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    return model, inputs()


WAYS = [(name, way) for name in MODELS for way in (traced, exported, decomposed)]
WAYS.remove(("encoder layer", traced))  # which torch.fx itself cannot trace


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_model(name, way):
    model, x = seeded(name)
    with torch.no_grad():
        expected = model(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, value in zip(run(way(model, x), x.numpy()), expected, strict=True):
        np.testing.assert_allclose(result.numpy(), value.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", [traced, exported])
def test_weights_can_stay_parameters(way):
    model, x = seeded("mlp")
    module, params = detach_params(way(model, x, keep_params_as_input=True))
    assert [tuple(array.shape) for array in params["main"]] == [(16, 20), (16,), (10, 16)]
    assert module["main"].attrs["num_input"] == 1
    result = run(module, x.numpy(), *[array.numpy() for array in params["main"]])[0]
    np.testing.assert_allclose(result.numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_results_of_an_exported_program_are_a_tuple():
    model, x = seeded("mlp")
    whole = exported(model, x)["main"].ret_struct_info
    assert isinstance(whole, relax.TupleStructInfo) and len(whole.fields) == 1
    alone = exported(model, x, unwrap_unit_return_tuple=True)["main"].ret_struct_info
    assert alone == whole.fields[0]


def test_a_dynamic_extent_is_symbolic():
    model, x = seeded("mlp")
    shapes = {"x": {0: torch.export.Dim("batch", min=1, max=64)}}
    module = from_exported_program(torch.export.export(model, (x,), dynamic_shapes=shapes))
    for rows in (1, 7):
        x = torch.randn(rows, 20)
        found = run(module, x.numpy())[0].numpy()
        np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


FUNCTIONS = {
    "mixed types": lambda x: (x > 0) * 2 + x.to(torch.int32) * 0.5,
    "clamp": lambda x: torch.clamp(x, -0.5, 0.5) + x.clamp(min=0.1),
    "indices": lambda x: x[:, None, 1:, -1] + x[0, ..., ::2].sum(),
    "stack": lambda x: torch.stack([x, -x], dim=1).flatten(1, 2),
    "split": lambda x: operator.add(x.split(2, dim=1)[0], x.split(2, dim=1)[1]),
    "var": lambda x: torch.var(x, dim=1) + x.std(-2, keepdim=True).squeeze(1),
    "max": lambda x: torch.max(x, dim=1)[0] + torch.max(x, dim=1)[1],
    "masked_fill": lambda x: x.masked_fill(x < 0, float("-inf")).softmax(-1),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    "where": lambda x: torch.where(x > 0, x, 0.0) + torch.ones_like(x).tril(),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
    "activations": lambda x: F.gelu(F.silu(x), approximate="tanh") + F.leaky_relu(x) + F.elu(x),
    "truth": lambda x: (x > 1).any(1) & (x > -2).all(-2) | x.any() & x.round().bool().all(),
    "cumulative": lambda x: x.cumsum(1) * x.flip(-1),
    "norms": lambda x: F.layer_norm(x, (5,)) + F.group_norm(x, 2) + F.rms_norm(x, (5,)),
    "gathered": lambda x: x.gather(1, (x > 0).long()) + x.index_select(1, (x[0, :, 0] > 0).long()),
    "repeated": lambda x: (
        x.repeat(2, 1, 1)[:3] * x.unflatten(1, (2, 2)).flatten(1, 2).expand(3, 4, 5)
    ),
    "rounded": lambda x: x.round() + x.trunc() + torch.fmod(x, 0.7) + torch.remainder(x, 0.7),
    "convolution": lambda x: F.conv_transpose1d(F.conv1d(x, x[:, :, :3]), x[:, :, :2], stride=2),
    "pooling": lambda x: F.max_pool1d(x, 2, 2, 1) + F.avg_pool1d(x, 3, 2, 1),
    "division": lambda x: torch.div(x, 0.3, rounding_mode="floor") + 1 / (x * x + 1),
    "upsample": lambda x: F.interpolate(x[None], scale_factor=2, mode="bilinear"),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", [traced, exported])
def test_a_function(name, way):
    class Whole(nn.Module):
        def forward(self, x):
            return FUNCTIONS[name](x)

    x = torch.from_numpy(np.random.default_rng(3).standard_normal((3, 4, 5)).astype("float32"))
    expected = Whole()(x).numpy()
    found = run(way(Whole(), x), x.numpy())[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def of_rows(function):
    """A function of a matrix whose number of rows is symbolic."""

    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    return from_fx(fx.symbolic_trace(Model()), [(("n", 4), "float32")])


def test_the_rest_of_a_symbolic_extent_can_be_taken():
    x = np.arange(20, dtype="float32").reshape(5, 4)
    machine = relax.VirtualMachine(relax.build(of_rows(lambda x: x[2:]), "llvm"), mlcweb.cpu())
    np.testing.assert_array_equal(machine["main"](mlcweb.nd.array(x)).numpy(), x[2:])


def test_a_variance_of_the_whole_population_needs_no_number():
    assert of_rows(lambda x: x.var(0, correction=0))["main"].ret_struct_info.ndim == 1


def test_a_norm_with_weights_needs_no_number_of_channels():
    weights = [torch.ones(4)] * 4
    module = of_rows(lambda x: F.batch_norm(x.t(), *weights))
    assert module["main"].ret_struct_info.ndim == 2


@pytest.mark.parametrize(
    "function",
    [lambda x: x.split(2), lambda x: x.chunk(2), lambda x: x.unbind(0), lambda x: x.var(0)],
)
def test_what_needs_a_number_for_an_extent_says_so(function):
    with pytest.raises(TorchError, match="extent n of axis 0 of inp_0 is not a number"):
        of_rows(function)


def test_what_cannot_be_imported():
    class Strange(nn.Module):
        def forward(self, x):
            return torch.linalg.inv(x)

    with pytest.raises(TorchError, match=r'node "linalg_inv.*" calls linalg_inv, which cannot'):
        traced(Strange(), torch.ones(2, 2))
    with pytest.raises(TorchError, match=r"torch.fx.GraphModule, not MLP.*mlcweb\[torch\]"):
        from_fx(MLP(), [((3, 20), "float32")])
    with pytest.raises(TorchError, match="training mode"):
        traced(CNN().train(), torch.ones(1, 3, 32, 32))
    with pytest.raises(TorchError, match="inputs x; input_info is about 2"):
        from_fx(fx.symbolic_trace(MLP()), [((3, 20), "float32")] * 2)


def test_what_cannot_be_imported_says_what_can_be_done():
    class Strange(nn.Module):
        def forward(self, x):
            return torch.linalg.det(x) + torch.linalg.inv(x)

    with pytest.raises(TorchError) as refused:
        decomposed(Strange(), torch.eye(2))
    text = str(refused.value)
    assert "custom_convert_map={" in text and "other nodes linalg_inv_ex" in text
    assert len(text) < 400
    with pytest.raises(TorchError, match="run_ep_decomposition=True may say it by simpler ones"):
        exported(Strange(), torch.eye(2))
    with pytest.raises(TorchError, match="from_exported_program, which decomposes, may import it"):
        traced(Strange(), torch.eye(2))

    class Nearby(nn.Module):
        def forward(self, x):
            return torch.nanmedian(x)

    with pytest.raises(TorchError, match="nanmedian, which cannot be imported; there is median"):
        traced(Nearby(), torch.ones(2))


@pytest.mark.parametrize(
    ("function", "shape", "source"),
    [
        (lambda x: F.max_pool2d(x, 2, return_indices=True), (1, 2, 4, 4), "max_pool2d"),
        (lambda x: F.max_pool1d(x, 2, return_indices=True)[1] + 1, (1, 2, 4), "max_pool2d"),
        (lambda x: torch.native_layer_norm(x, (4,), None, None, 1e-5), (2, 4), "native_layer_norm"),
    ],
)
def test_results_that_are_left_out_are_refused_where_they_are_used(function, shape, source):
    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    with pytest.raises(TorchError, match=rf'Result 1 of the node "{source}.*"getitem_1" takes'):
        decomposed(Model(), torch.ones(shape))
    with pytest.raises(TorchError, match="cannot be imported"):
        traced(Model(), torch.ones(shape))


def test_own_converters():
    class Strange(nn.Module):
        def forward(self, x):
            return torch.special.expit(x)

    def logistic(node, translator):
        return relax.op.sigmoid(translator.env[node.args[0]])

    name = fx.symbolic_trace(Strange()).graph.find_nodes(
        op="call_function", target=torch.special.expit
    )[0].target.__name__  # fmt: skip
    x = torch.linspace(-3, 3, 7)
    found = run(traced(Strange(), x, custom_convert_map={name: logistic}), x.numpy())[0]
    np.testing.assert_allclose(found.numpy(), torch.sigmoid(x).numpy(), rtol=1e-6)


def test_own_converters_read_the_node_as_those_of_tvm_do():
    class Strange(nn.Module):
        def forward(self, x):
            return torch.linalg.det(x)

    def product_of_diagonal(node, importer):
        (x,) = importer.retrieve_args(node)
        assert tuple(importer.shape_of(x)) == (2, 2)
        picked = importer.block_builder.emit(relax.op.tril(relax.op.triu(x)))
        return relax.op.prod(relax.op.sum(picked, 1))

    own = {"linalg_det.default": product_of_diagonal}
    x = torch.tensor([[2.0, 0], [0, 3.0]])
    (found,) = run(exported(Strange(), x, custom_convert_map=own), x.numpy())
    assert found.numpy() == 6


def same(model, x, way=decomposed):
    """What PyTorch gives, and what the imported program gives."""
    with torch.no_grad():
        expected = model(x.clone())
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, value in zip(run(way(model, x), x.numpy()), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(3))
        self.scale = nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x):
        self.total.add_(x)
        return self.total * self.scale, x[1:]


@pytest.mark.parametrize("way", [exported, decomposed])
def test_what_is_written_to_a_buffer_is_read_but_no_result(way):
    x = torch.arange(3.0)
    module = way(Counting(), x)
    total, rest = run(module, x.numpy())
    np.testing.assert_array_equal(total.numpy(), [2, 4, 6])
    np.testing.assert_array_equal(rest.numpy(), [1, 2])


def test_buffers_are_constants_where_parameters_are_kept():
    module, params = detach_params(decomposed(Counting(), torch.ones(3), keep_params_as_input=True))
    assert [param.name_hint for param in module["main"].params] == ["x", "p_scale"]
    np.testing.assert_array_equal(params["main"][0].numpy(), [2, 2, 2])


def test_results_need_no_tuple_that_is_bound():
    main = decomposed(Counting(), torch.ones(3), no_bind_return_tuple=True)["main"]
    assert isinstance(main.body.body, relax.Tuple)


def test_extents_can_be_formulas_of_others():
    class Halves(nn.Module):
        def forward(self, x, y):
            return x[: y.shape[0]] + y, x.shape[0]

    n = torch.export.Dim("n", min=2, max=32)
    program = torch.export.export(
        Halves(), (torch.ones(8), torch.ones(4)), dynamic_shapes=({0: 2 * n}, {0: n})
    )
    module = from_exported_program(program)
    (symbol,) = module["main"].attrs["tir_var_upper_bound"]
    assert module["main"].attrs["tir_var_lower_bound"][symbol] == 2
    assert module["main"].attrs["tir_var_upper_bound"][symbol] == 32
    x, y = np.arange(6, dtype="float32"), np.ones(3, "float32")
    machine = relax.VirtualMachine(relax.build(module, "llvm"), mlcweb.cpu())
    total, count = machine["main"](mlcweb.nd.array(x), mlcweb.nd.array(y))
    np.testing.assert_array_equal(total.numpy(), [1, 2, 3])
    assert count == 6


class InPlace(nn.Module):
    def forward(self, x):
        y = x + 1
        z = F.relu(y, inplace=True)
        y.mul_(2).sub_(1)
        y.add_(z)
        return y, z, x


class OfViews(nn.Module):
    def forward(self, x):
        y = x + 1
        row = y.view(-1)
        y.mul_(2)
        return row + 1


@pytest.mark.parametrize("way", [traced, exported, decomposed])
def test_what_is_written_in_place_is_seen_by_all_names(way):
    same(InPlace(), torch.linspace(-3, 3, 7), way)


@pytest.mark.parametrize("way", [traced, exported])
def test_writing_under_a_view_is_refused(way):
    with pytest.raises(TorchError, match=r"writes to a tensor of which another is a view"):
        way(OfViews(), torch.ones(2, 3))
    same(OfViews(), torch.ones(2, 3), decomposed)


def test_a_branch_is_chosen_when_the_program_runs():
    class Chosen(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: (x * 2, x + 1), lambda x: (x - 1, -x), (x,))

    for x in (torch.ones(3), -torch.ones(3)):
        same(Chosen(), x)


def test_an_assertion_is_kept():
    class Classes(nn.Module):
        def forward(self, x):
            return F.one_hot(x, 4)

    module = decomposed(Classes(), torch.tensor([1, 2]))
    np.testing.assert_array_equal(run(module, np.array([3, 0]))[0].numpy(), np.eye(4)[[3, 0]])
    with pytest.raises(AssertionError, match="Class values must be non-negative"):
        run(module, np.array([3, -1]))


def test_weights_that_are_sparse_become_dense():
    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.eye(3).to_sparse() * 2)

        def forward(self, x):
            return torch.sparse.mm(self.weight, x)

    same(Sparse(), torch.arange(6.0).reshape(3, 2))


def forms(mod):
    """The calls of `main`, an operator and its attributes each."""
    values = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    return [
        (value.op.name.removeprefix("relax."), value.attrs or {})
        for value in values
        if isinstance(value, relax.Call)
    ]


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: x.clamp(min=0.5), "clip"),
        (lambda x: F.elu(x), "exp subtract nn.relu multiply nn.relu add"),
        (lambda x: x[1], "take"),
        (lambda x: torch.stack((x, x), 1), "stack"),
        (lambda x: (x > 0) | (x < 1), "greater less bitwise_or"),
        (lambda x: x.reshape(4, 4), ""),
        (lambda x: x.expand(4, -1), ""),
        (lambda x: torch.zeros_like(x), "zeros_like"),
        (lambda x: torch.argmax(x, 1), "argmax"),
        (lambda x: x.roll(1, 0), "strided_slice strided_slice concat"),
        (lambda x: torch.norm(x), "multiply sum sqrt"),
    ],
)
def test_functions_have_the_forms_that_tvm_gives_them(function, operators):
    mod = from_fx(fx.symbolic_trace(function), [((4, 4), "float32")])
    assert " ".join(name for name, _ in forms(mod)) == operators


def test_products_and_running_sums_say_their_types():
    def calculate(x, w):
        return (x @ w).cumsum(1, dtype=torch.float64)

    mod = from_fx(fx.symbolic_trace(calculate), [((4, 4), "float32")] * 2)
    (_, product), (_, running) = forms(mod)
    assert product["out_dtype"] == "float32" and running["dtype"] == "float64"


def test_a_bias_is_reshaped_and_what_nobody_asks_for_is_left_out():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    program = torch.export.export(model, (torch.randn(1, 3, 8, 8),))
    mod = from_exported_program(program)
    assert [name for name, _ in forms(mod)] == ["nn.conv2d", "reshape", "add", "nn.batch_norm"]
    assert str(mod["main"]).count("[0]\n") <= 1 and "[1]\n" not in str(mod["main"])


def test_an_element_that_is_not_there_is_refused():
    with pytest.raises(TorchError, match="no element 7 on axis 1, which has 4"):
        from_fx(fx.symbolic_trace(lambda x: x[:, 7]), [((3, 4), "float32")])
