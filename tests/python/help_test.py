"""What help() and type checkers find."""
import inspect
import unittest

import hearsay
from hearsay import errors


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

    def test_problems_know_their_places(self):
        error = errors.ConfigError(
            "invalid configuration (3 errors)\n  a b.yaml:3:14: x.y: must be > 0, got -1: no\n"
            "  c.yaml:1:1: z: unknown key\n  --set k=1: k: unknown key"
        )
        self.assertEqual([p[:3] for p in error.problems][:2], [("a b.yaml", 3, 14), ("c.yaml", 1, 1)])
        self.assertEqual(error.problems[0].message, "x.y: must be > 0, got -1: no")
        self.assertEqual(error.problems[2].file, "--set")
        self.assertEqual([c.code for c in (errors.ConfigError, errors.DataError, errors.RankLeft)], [2, 3, 4])


if __name__ == "__main__":
    unittest.main()
