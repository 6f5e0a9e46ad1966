"""TVMScript: programs as Python source. `parse` reads it, `script` prints it."""

from mlcweb.script import ir, tir
from mlcweb.script.parser import from_source, parse
from mlcweb.script.decorators import ir_module
from mlcweb.script.printer import render_with_marks, script, script_with_lines
