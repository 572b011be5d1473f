"""Reads a table of functions: the results that the stand-in of one library returns.

A line is one of these; `#` begins a comment.

  library STEM            the stand-in serves the SONAMEs that begin with STEM.so
  soname NAME             write this SONAME even if no library is linked to one
  prefix PREFIX           an import without a version that begins so belongs to the library
  helper FILE             a compiled library that has some of the functions
  call NAMES ACTION, …    the actions of the functions; NAMES may have `*`

An action is one of

  success                 return 0, which every function does that no line names
  return N                return N
  text WORDS              return the address of WORDS (the last action)
  handle ARG              store an address, not null, through argument ARG (from 1)
  store32 ARG[+OFFSET] N  store a number through it; store64 stores eight bytes
  kernel                  count a kernel, which may write any memory

N is a number, or @NAME for an option of the program that writes the library. The first line whose
NAMES match a function holds. A name without `*` is defined even if nobody imports it.
"""

import dataclasses
import fnmatch

from machine_code import Body, Store


@dataclasses.dataclass
class Table:
    """The lines of one file."""

    stem: str = ""
    sonames: list = dataclasses.field(default_factory=list)
    prefixes: list = dataclasses.field(default_factory=list)
    helper: str = ""
    calls: list = dataclasses.field(default_factory=list)  # (pattern, Body)

    def body_of(self, name):
        """The Body of a function."""
        for pattern, body in self.calls:
            if fnmatch.fnmatchcase(name, pattern):
                return body
        return Body()

    def own_names(self):
        """The functions that are defined in any case."""
        return [pattern for pattern, _ in self.calls if "*" not in pattern]


class WrongTable(Exception):
    """A line of a table cannot be used; the message has file, line and reason."""


def _number(word, options):
    if word.startswith("@"):
        return options[word[1:]]
    return int(word, 0)


def _argument(word):
    number = int(word)
    if number < 1:
        raise ValueError(f"arguments count from 1, not {number}")
    return number


def _action(words, body, options):
    name, *rest = words
    if name == "success":
        if rest:
            raise ValueError("success has no operand")
    elif name == "return":
        (number,) = rest
        body.result = _number(number, options)
    elif name == "kernel":
        if rest:
            raise ValueError("kernel has no operand")
        body.is_kernel = True
    elif name == "text":
        body.text = " ".join(rest)
    elif name == "handle":
        (argument,) = rest
        body.stores.append(Store(_argument(argument), 0, 64, 0, True))
    elif name in ("store32", "store64"):
        where, number = rest
        argument, _, offset = where.partition("+")
        body.stores.append(
            Store(_argument(argument), int(offset or 0), int(name[5:]), _number(number, options)))
    else:
        raise ValueError(f"'{name}' is no action")


def _call(rest, options):
    names, _, actions = rest.partition(" ")
    body = Body()
    for action in actions.split(","):
        _action(action.split(), body, options)
    return names, body


def _line(word, rest, table, options):
    if word == "library":
        table.stem = rest
    elif word == "soname":
        table.sonames.append(rest)
    elif word == "prefix":
        table.prefixes.append(rest)
    elif word == "helper":
        table.helper = rest
    elif word == "call":
        table.calls.append(_call(rest, options))
    else:
        raise ValueError(f"'{word}' begins no line")


def read_table(path, options):
    """Returns the Table in the file; raises WrongTable."""
    table = Table()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        word, _, rest = line.partition(" ")
        try:
            _line(word, rest.strip(), table, options)
        except (ValueError, KeyError, IndexError) as error:
            raise WrongTable(f"{path}:{number}: {error}: {line}") from error
    if not table.stem:
        raise WrongTable(f"{path}: no line 'library'")
    return table
