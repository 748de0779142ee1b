"""The program with all of its commands. Imported late, by `main`: it takes a second."""

from __future__ import annotations

import typer

from apportion.commands.allocator import allocator
from apportion.commands.check_config import check_config
from apportion.commands.decide import decide
from apportion.commands.demo import demo
from apportion.commands.edge import edge
from apportion.commands.explain import explain
from apportion.commands.override import override
from apportion.commands.region import region
from apportion.commands.simulate import simulate
from apportion.commands.top import top
from apportion.commands.version import version

app = typer.Typer(
    help="A hierarchical rate limiter: sheds at the edge, decides exactly in the region, re-divides each second.",
    epilog="Exit codes: 0 done; 1 the answer is no; 2 the input is wrong; 3 a service could not be reached; "
    "130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _command in (demo, simulate, check_config, decide, explain, top, override, region, allocator, edge, version):
    app.command()(_command)
