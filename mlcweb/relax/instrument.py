"""`WellFormedInstrument`: a check of graphs around every pass."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.instrument import PassInstrument
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import PassInfo
from mlcweb.relax.analysis.well_formed import refuse_ill_formed


class WellFormedInstrument(PassInstrument):
    """Checks modules before every pass, if `validate_before_transform`, and after it, but for the
    passes named in `skip_pass_name`, which make modules well formed.

    Raises: AssertionError: a module is not well formed; names the pass, and says why.
    """

    def __init__(
        self, check_struct_info: bool = True, validate_before_transform: bool = True
    ) -> None:
        self.skip_pass_name = ["Normalize", "NormalizeGlobalVar", "ResolveGlobals"]
        self.check_struct_info = check_struct_info
        self.validate_before_transform = validate_before_transform

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.validate_before_transform:
            self._check(mod, f"before the pass {info.name}", info)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._check(mod, f"after the pass {info.name}", info)

    def _check(self, mod: IRModule, when: str, info: PassInfo) -> None:
        if info.name in self.skip_pass_name:
            return
        try:
            refuse_ill_formed(mod, self.check_struct_info)
        except DiagnosticError as error:
            raise AssertionError(f"The module is not well formed {when}: {error}") from error
