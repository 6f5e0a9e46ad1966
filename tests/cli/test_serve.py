"""`mlcweb serve`."""

import signal
import subprocess
import sys
from urllib.request import urlopen

from mlcweb import cli
from tests.cli.conftest import ROOT
from tests.waiting import HANG_S


def test_serve_tells_where_it_is_and_ends_quietly(tmp_path):
    (tmp_path / "index.html").write_text("page")
    command = [sys.executable, "-m", "mlcweb", "serve", str(tmp_path), "--port", "0"]
    pipe = subprocess.PIPE

    def take_interrupts() -> None:
        # A shell starts what runs in its background with interrupts ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, preexec_fn=take_interrupts
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        with urlopen(address) as response:
            assert response.read() == b"page"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert (errors, process.returncode) == ("", 0)


def test_serve_says_how_to_get_a_page(tmp_path, capsys):
    assert cli.main(["serve", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path} holds no built page (no index.html); "
        "pip install 'mlcweb[page]', or in a checkout, `make play`\n"
    )
