"""Chapter 5 of the course: its own importer for torch.fx, block by block in the book's order.

The cells are as they stand. What they load from the net is put in their place: a data set of one
image, the parameters of the network (seeded), and a plotting library that draws nothing.
"""

import pickle
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from mlcweb import compat
from mlcweb.playground import cell
from tests.course.test_cells import HERE

torch = pytest.importorskip("torch", reason="PyTorch comes with `make test-all`")

pytestmark = pytest.mark.thorough

LAYERS = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """The data set, the parameters' file and the plotting library."""
    rng = np.random.default_rng(5)
    params = {
        name: rng.uniform(-0.05, 0.05, shape).astype("float32") for name, shape in LAYERS.items()
    }
    (tmp_path / "fashionmnist_mlp_params.pkl").write_bytes(pickle.dumps(params))
    monkeypatch.chdir(tmp_path)
    image = torch.from_numpy(rng.random((1, 28, 28), "float32"))
    vision: object = ModuleType("torchvision")
    vision.datasets = SimpleNamespace(FashionMNIST=lambda **options: [(image, 2)])
    vision.transforms = SimpleNamespace(ToTensor=lambda: None)
    plotting: object = ModuleType("matplotlib.pyplot")
    for name in ("figure", "imshow", "colorbar", "grid", "show"):
        setattr(plotting, name, lambda *args: None)
    whole: object = ModuleType("matplotlib")
    whole.pyplot = plotting
    modules = {"torchvision": vision, "matplotlib": whole, "matplotlib.pyplot": plotting}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    # `print_tabular` of torch.fx needs a package that the book's other cells do not.
    monkeypatch.setattr(torch.fx.Graph, "print_tabular", lambda graph: print(graph))
    compat.install()
    yield image.numpy().reshape(1, 784), params
    compat.uninstall()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_cells_of_chapter_5(stand_ins, capsys):
    image, params = stand_ins
    result = cell.execute((HERE / "cells" / "chapter5.txt").read_text(), "chapter5.py")
    assert result.ok, result.error
    printed = capsys.readouterr().out
    assert "Class: Pullover" in printed
    predictions = re.findall(r"(Torch|MLPModule) Prediction: (.*)", printed)
    assert [where for where, _ in predictions] == ["Torch", "MLPModule"]
    assert predictions[0][1] == predictions[1][1]
    sources = [module.source for module in result.modules]
    assert "R.call_tir(cls.te_matmul, (A, B)" in sources[-4]
    assert "R.call_tir(cls.te_relu, (lv,)" in sources[-3]
    assert "R.call_tir(cls.dense, (x, metadata" in sources[-2]
    assert "R.nn.relu(" in sources[-1] and "R.matmul(x, " in sources[-1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_books_module_gives_what_pytorch_gives(stand_ins, capsys):
    image, params = stand_ins
    source = (HERE / "cells" / "chapter5.txt").read_text()
    expected = np.maximum(image @ params["w0"].T + params["b0"], 0) @ params["w1"].T + params["b1"]
    check = "\nnp.save('low.npy', nd_res.numpy())\n" + (
        "np.save('high.npy', relax.VirtualMachine(relax.build(MLPModuleHighLevel, 'llvm'),"
        " tvm.cpu())['main'](data_nd).numpy())\n"
    )
    result = cell.execute(source + check, "chapter5.py")
    assert result.ok, result.error
    for name in ("low.npy", "high.npy"):
        np.testing.assert_allclose(np.load(name), expected, rtol=1e-5, atol=1e-6)
