"""What help() and type checkers find."""
import ast
import inspect
import os
import shutil
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path

import hearsay
from hearsay import _core, errors

PROGRAM = """
    from typing import List, Tuple
    import numpy as np
    import hearsay

    def star(ranks: int) -> List[Tuple[int, int]]:
        return [(0, i) for i in range(1, ranks)]

    def trigger(o: hearsay.Observation) -> float:
        if o.length > 1000:
            return 0.01 * o.norm
        return o.chnge  # wrong

    member = hearsay.join("gossip.yaml", {"w": np.zeros(3, np.float32)}, graph=star, trigger=trigger)
    batches: List[Tuple[int, str]] = []
    for number, text in member.share(batches):
        number + text  # wrong
        with member.step(learning_rate=0.1) as step:
            step.loss = 0.1
            step.exchange()
            member.parameters["w"] -= 0.1 * member.gradients["w"]
    member.step(lerning_rate=0.1)  # wrong
    member.evaluate(lambda: {"accuracy": 0.5})["loss_mean_model"] + "s"  # wrong
    with member.averaged() as distance:
        print(round(distance, 3), member.rank + 1, member.summary()["messages"])
    hearsay.report([member], "page.html").read_text()
    try:
        hearsay.join(3, [np.zeros(3, np.float32)])  # wrong
    except hearsay.errors.ConfigError as error:
        error.problems[0].line + 1  # wrong
"""


class HelpTest(unittest.TestCase):
    def test_everything_public_is_explained_and_typed(self):
        self.assertIn("hearsay.join(", hearsay.__doc__)
        for owner, name, thing in self.public():
            with self.subTest(name=f"{owner.__name__}.{name}"):
                self.assertTrue(inspect.getdoc(thing), "no docstring")
                if inspect.isfunction(thing):
                    signature = inspect.signature(thing)
                    self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
                    for parameter in list(signature.parameters.values()):
                        if parameter.name not in ("self", "kind", "value", "trace"):
                            self.assertIsNot(parameter.annotation, inspect.Parameter.empty, parameter.name)

    def public(self):
        for name in hearsay.__all__:
            thing = getattr(hearsay, name)
            yield hearsay, name, thing
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                        yield thing, member, value

    def test_every_argument_of_join_is_in_its_help(self):
        for name in inspect.signature(hearsay.join).parameters:
            self.assertRegex(hearsay.join.__doc__, rf"\b{name}\b")

    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed (Debian: mypy)")
    def test_a_type_checker_finds_mistakes_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program.py")
            program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
            done = subprocess.run(
                ["mypy", "--strict", "--follow-imports", "silent", "--cache-dir", folder, str(program)],
                env={**os.environ, "MYPYPATH": str(Path(hearsay.__file__).parent.parent)},
                capture_output=True,
                text=True,
                check=False,
            )
            lines = program.read_text(encoding="utf-8").splitlines()
        expected = [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]
        found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
        self.assertEqual(sorted(found), expected, done)

    def test_the_types_of_the_core_are_those_of_the_core(self):
        stub = Path(hearsay.__file__).with_name("_core.pyi").read_text(encoding="utf-8")
        for item in ast.parse(stub).body:
            if isinstance(item, ast.ClassDef):
                real = {name for name in vars(getattr(_core, item.name)) if not name.startswith("_")}
                typed = {part.name for part in item.body if isinstance(part, ast.FunctionDef)} - {"__init__"}
                self.assertEqual(typed, real, item.name)
            elif isinstance(item, ast.FunctionDef):
                self.assertTrue(callable(getattr(_core, item.name)))

    def test_problems_are_what_they_were_made_of_whatever_the_message_says(self):
        problems = [("b.yaml", 3, 14, "x.y: must be > 0"), ("set", None, None, "no")]
        error = errors.ConfigError("a.yaml:3:14: no", problems)
        self.assertEqual(error.problems[0], ("b.yaml", 3, 14, "x.y: must be > 0"))
        self.assertEqual(error.problems[1].file, "set")
        self.assertEqual(errors.ConfigError("a.yaml:3:14: no").problems, [("", None, None, "a.yaml:3:14: no")])
        self.assertEqual([c.code for c in (errors.ConfigError, errors.DataError, errors.RankLeft)], [2, 3, 4])


if __name__ == "__main__":
    unittest.main()
