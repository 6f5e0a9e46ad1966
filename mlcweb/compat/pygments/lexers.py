"""The lexers of the Pygments stand-in: names only, since nothing is coloured."""


class PythonLexer:
    """Python source."""


Python3Lexer = PythonLexer
