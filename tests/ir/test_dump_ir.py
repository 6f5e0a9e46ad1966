"""`DumpIR`: the modules between passes as files."""

from mlcweb.ir import IRModule
from mlcweb.ir.instrument import DumpIR
from mlcweb.ir.transform import PassContext, module_pass
from mlcweb.script import from_source

MOD = from_source("""@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)""")


@module_pass(opt_level=0, name="a/Pass")
def renamed(mod: IRModule, ctx: PassContext) -> IRModule:
    return IRModule({"other": mod["main"]})


def test_each_pass_leaves_a_file(tmp_path, capsys):
    folder = tmp_path / "new" / "dump"
    with PassContext(instruments=[DumpIR(folder)]):
        renamed(renamed(MOD) and MOD)
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["000_a_Pass.py", "001_a_Pass.py"]
    assert from_source((folder / names[0]).read_text())["other"] is not None
    DumpIR(folder, refresh=True)
    assert list(folder.iterdir()) == []
    (folder / "mine.txt").write_text("")
    (folder / "000_a.py").write_text("")
    DumpIR(str(folder), refresh=True)
    assert len(list(folder.iterdir())) == 2 and "is kept" in capsys.readouterr().out
