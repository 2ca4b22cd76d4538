from integration import OverrideDefinitions


def build():
    return [
        OverrideDefinitions([["--steps 1"]], "the usual", "usual"),
        OverrideDefinitions([["--steps 2"]], "two", "two_only", ngpu=2),
        OverrideDefinitions([["--steps 8"]], "wide", "wide", ngpu=8),
        OverrideDefinitions([["--steps 8"]], "off", "switched_off", ngpu=2, disabled=True),
    ]
