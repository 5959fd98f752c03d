"""``multimargin completion``.

Print the completion script of a shell.

  bash   eval "$(multimargin completion bash)"
  zsh    eval "$(multimargin completion zsh)"
  fish   multimargin completion fish | source
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from .main import COMMANDS, DONE, parser_of

_BASH = """\
_multimargin() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}} $before" in
{values}
    esac
    if [ -z "$words" ] && [[ "$word" == -* ]]; then
        case "${{COMP_WORDS[1]}}" in
{flags}
        esac
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _multimargin multimargin
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    if args.shell == "fish":
        print("\n".join(fish()))
    else:
        before = "autoload -U +X bashcompinit && bashcompinit\n" if args.shell == "zsh" else ""
        print(before + bash(), end="")
    return DONE


def options_of() -> Iterator[tuple[str, argparse.Action]]:
    """Every option of every command."""
    for name in COMMANDS:
        for action in parser_of(name)._actions:
            yield name, action


def bash() -> str:
    """The script of bash, which zsh can use too."""
    flags: dict[str, list[str]] = {name: [] for name in COMMANDS}
    values = []
    for command, action in options_of():
        flags[command] += action.option_strings
        if action.choices is None:
            continue
        words = " ".join(map(str, action.choices))
        if action.option_strings:
            values += [f'        "{command} {flag}") words="{words}";;' for flag in action.option_strings]
        else:
            values.append(f'        "{command} {command}") words="{words}";;')
    cases = [f'            {name}) words="{" ".join(found)}";;' for name, found in flags.items()]
    return _BASH.format(commands=" ".join(COMMANDS), values="\n".join(values), flags="\n".join(cases))


def fish() -> Iterator[str]:
    """The lines of the script of fish."""
    yield "set -l none 'not __fish_seen_subcommand_from " + " ".join(COMMANDS) + "'"
    for name, summary in COMMANDS.items():
        yield f'complete -c multimargin -f -n "$none" -a {name} -d {_quoted(summary)}'
    for command, action in options_of():
        line = f"complete -c multimargin -n '__fish_seen_subcommand_from {command}'"
        for flag in action.option_strings:
            line += f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
        if action.choices is not None:
            line += f" -x -a {_quoted(' '.join(map(str, action.choices)))}"
        elif action.option_strings and action.nargs != 0:
            line += " -r"
        if action.option_strings or action.choices is not None:
            yield f"{line} -d {_quoted(action.help or '')}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
