"""Texts of the terminals that are more than one word: few names, so that they meet, and strange values."""

__all__ = ["STRANGE", "USUAL"]

XSD = "http://www.w3.org/2001/XMLSchema#"

USUAL: dict[str, tuple[str, ...]] = {
    "IRIREF": (
        *("<http://e/a>", "<http://e/b>", "<http://e/p>"),
        *("<http://e/q>", "<http://e/g>", "<rel>", "<>", "<#f>"),
        *(f"<{XSD}integer>", f"<{XSD}dateTime>", f"<{XSD}double>", f"<{XSD}duration>", f"<{XSD}string>"),
    ),
    "PNAME_LN": (":a", ":b", ":p", ":q", ":g", "xsd:integer", "xsd:string", "xsd:date", "xsd:boolean"),
    "PNAME_NS": (":", "xsd:"),
    "BLANK_NODE_LABEL": ("_:x", "_:y", "_:é", "_:1.2"),
    "VAR1": ("?a", "?b", "?c", "?d", "?é", "?1"),
    "VAR2": ("$a", "$b", "$p"),
    "LANG_DIR": ("@en", "@de-CH-1996", "@ar--rtl", "@he--ltr"),
    "NIL": ("()", "( \n)"),
    "ANON": ("[]", "[ # comment\n]"),
    "INTEGER": ("0", "1", "2", "007", "42"),
    "DECIMAL": (".5", "1.50"),
    "DOUBLE": ("1e0", "1.5e9"),
    "INTEGER_POSITIVE": ("+1",),
    "DECIMAL_POSITIVE": ("+.5", "+1.0"),
    "DOUBLE_POSITIVE": ("+1e0",),
    "INTEGER_NEGATIVE": ("-1", "-0"),
    "DECIMAL_NEGATIVE": ("-.5", "-0.0"),
    "DOUBLE_NEGATIVE": ("-1e0", "-0e0"),
    "STRING_LITERAL1": ("''", "'a'", "'i'", "'[a-z]+'", "'2020-02-28'", "'PT1S'", "'1.2'"),
    "STRING_LITERAL2": (
        *('""', '"a"', '"b\U0001f600é"', r'"\u0041\U0001F600\t"', '"2020-01-01T00:00:00Z"', '"(a)|b"'),
    ),
    "STRING_LITERAL_LONG1": ("''''''", "'''it's\n''a'''"),
    "STRING_LITERAL_LONG2": ('""""""', '"""say "a"\n"""', '"""#}{<<("""'),
}  # fmt: skip

STRANGE: dict[str, tuple[str, ...]] = {
    "IRIREF": (
        *("<urn:a>", r"<http://e/\u0041>", "<http://e/é%20\U0001f600>"),
        *("<http://[::1]/>", "<http://127.0.0.1:1/>"),
        *("<//e/x/../y>", "<?query>", "<http://e/%zz>"),
        *(r"<http://e/\uD800>", "<http://e:99999/>", "<:>", "<a:>"),
        *("<mailto:a@b>", f"<http://e/{'long' * 900}>"),
        *("<http://e/a#b#c>", "<http://[::zz]/>", "<file:///etc/passwd>"),
    ),
    "PNAME_LN": (r":a\.b", ":a%20", ":é", ":1", "none:a", ":a:b"),
    "LANG_DIR": ("@x-private", "@abcdefgh-12345678", "@en--other", "@toolonglanguage", "@a-b-c"),
    "INTEGER": ("9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 400),
    "DECIMAL": ("0.000000000000000000001", "79228162514264337593543950335.9", "1." + "3" * 300),
    "DOUBLE": ("1.e9", ".1e-400", "1e400", "17976931348623157e292"),
    "INTEGER_POSITIVE": ("+9223372036854775808",),
    "DOUBLE_POSITIVE": ("+1e400",),
    "INTEGER_NEGATIVE": ("-9223372036854775808", "-9223372036854775809"),
    "DOUBLE_NEGATIVE": ("-1e400", "-1e-400"),
    "STRING_LITERAL1": ("'(a+)+$'", "'[a-z'", r"'\\'", "'%s{0}'", "'2020-02-30'", "'\\\r'", "'xsmiq'"),
    "STRING_LITERAL2": (
        *('"aaaaaaaaaaaaaaaaaaaaaaaa!"', '"\u0301"'),
        *('"\u202e\ufeff\ufffe"', '"((a*)*)*b"', '"$1$2\\\\0"', '"NaN"'),
        *('"-9999999999-12-31"', '"P1Y2M3DT4H5M6.7S"', r'"\uD800"'),
        *(r'"\U00110000"', r'"\u0000"', r'"\q"', '"\0"'),
        *('"\x01\x7f\x85"', f'"{"long " * 900}"', '"x{1000}{1000}"'),
        *('"(?i)\\\\p{Nope}"', '"-INF"', '"24:00:00"'),
    ),
    "STRING_LITERAL_LONG1": (r"'''\\'''", "'''\\'''"),
    "STRING_LITERAL_LONG2": ('"""\0"""',),
}  # fmt: skip
