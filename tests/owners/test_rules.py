"""Owner rules as they are written, in TOML and in spreadsheets: strict, and every refusal names its place."""

import pytest

from tenfold import config
from tenfold.errors import AssumptionError


def toml(tmp_path, text):
    file = tmp_path / "tenfold.toml"
    file.write_text(text, encoding="utf-8")
    return file


def read(tmp_path, text):
    return config.owners(toml(tmp_path, text))


def listed(tmp_path, text, encoding="utf-8"):
    (tmp_path / "owners.csv").write_bytes(text.encode(encoding))
    return read(tmp_path, 'owners = "owners.csv"')


def test_rules_keep_their_order_and_say_what_they_are_about(tmp_path):
    found = read(
        tmp_path,
        """
report_zone = "Europe/Berlin"
[[owner]]
team = "search"
feature = "rag"
api_key_id = ["sk-a1*", "key_123"]
[[owner]]
team = "support"
tags.cost_center = "4711"
tags."a.b" = "x"
logged.feature = "chat"
[[owner]]
team = "platform"
shared = true
override = true
client = "gateway*"
""",
    )
    assert [rule.gives for rule in found.rules] == [
        ("search", "rag", False),
        ("support", None, False),
        ("platform", None, True),
    ]
    assert found.rules[0].conditions == (("api_key_id", ("key_123", "sk-a1*")),)
    assert [name for name, _ in found.rules[1].conditions] == ["logged.feature", "tags.a.b", "tags.cost_center"]
    assert found.shared_teams == ("platform",)
    assert found.teams == {"search", "support", "platform"}
    assert config.settings(tmp_path / "tenfold.toml").report_zone == "Europe/Berlin"


def test_no_file_is_no_statement_and_an_empty_file_is_one(tmp_path):
    assert config.owners(tmp_path / "tenfold.toml") is None
    assert read(tmp_path, "").version == "none"


def test_the_version_is_of_what_rules_do_to_requests(tmp_path):
    one = '[[owner]]\nteam = "a"\nproject = ["p", "q"]\n'
    version = read(tmp_path, one).version
    assert read(tmp_path, one.replace('["p", "q"]', '["q", "p", "p"]') + "shared = true\n").version == version
    assert listed(tmp_path, "project,team\np,a\n").version != version
    assert read(tmp_path, one + "override = true\n").version != version
    both = read(tmp_path, one + '[[owner]]\nteam = "b"\norg = "o"\n').version
    assert read(tmp_path, '[[owner]]\nteam = "b"\norg = "o"\n' + one).version != both


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('team = "a"\nprojct = "p"', 'owner 1: unknown key "projct". Did you mean "project"?'),
        ('team = "a"\ntag.x = "p"', 'Did you mean "tags"?'),
        ('team = "a"\nlogged.user = "p"', 'unknown key "logged.user"'),
        ('team = "a"\ntags = "p"', "tags needs a key"),
        ('team = "a"\ntags.a.b = "p"', 'a key with dots is quoted: tags."a.b"'),
        ('project = "p"', "neither team nor feature"),
        ('team = "a"', "no condition"),
        ('team = "a"\nproject = 4711', 'project = 4711: write it as text, "4711"'),
        ('team = 7\nproject = "p"', "team = 7"),
        ('team = "a"\nproject = []', "an empty list matches nothing"),
        ('team = "a"\nproject = " "', "text without content"),
        ('team = "a"\nproject = "p\\u0000"', "text without content"),
        ('team = "a"\ntags."\\u0000" = "p"', "unknown key"),
        ('team = "Unallocated"\nproject = "p"', "the word for what nobody owns"),
        ('team = "a"\nproject = "p"\nshared = 1', "shared = 1: write true or false"),
        ('feature = "a"\nproject = "p"\nshared = true', "needs the team"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_by_place_and_key(tmp_path, text, says):
    with pytest.raises(AssumptionError) as caught:
        read(tmp_path, f"[[owner]]\n{text}\n")
    assert says in str(caught.value)
    assert "tenfold.toml, owner 1" in str(caught.value)


@pytest.mark.parametrize(
    "text", ['owner = "a"', '[owner]\nteam = "a"', "owners = 3", 'owners = "none.csv"', "[[owners]]"]
)
def test_the_tables_themselves_are_checked(tmp_path, text):
    with pytest.raises(AssumptionError, match=r"owner must be a list|owners = 3|none\.csv: no such file|an \[\[owner"):
        read(tmp_path, text)


class TestSpreadsheets:
    def test_bom_semicolons_quotes_blank_lines_and_short_rows(self, tmp_path):
        text = '\ufeffAPI_key_id;Project;Team;feature;tags.CC\r\n"k;1";;search;rag\r\n\r\n;p ; support;;9\r\n'
        found = listed(tmp_path, text)
        assert [(rule.gives[:2], rule.conditions) for rule in found.rules] == [
            (("search", "rag"), (("api_key_id", ("k;1",)),)),
            (("support", None), (("project", ("p",)), ("tags.CC", ("9",)))),
        ]
        assert [rule.where.rpartition("/")[2] for rule in found.rules] == ["owners.csv, line 2", "owners.csv, line 4"]

    def test_rules_of_the_settings_come_first(self, tmp_path):
        (tmp_path / "owners.csv").write_text("project,team,shared\np,b,yes\n")
        found = read(tmp_path, 'owners = "owners.csv"\n[[owner]]\nteam = "a"\nproject = "p"\n')
        assert [(rule.team, rule.shared) for rule in found.rules] == [("a", False), ("b", True)]

    def test_the_same_said_twice_is_once_and_two_owners_are_refused_by_line(self, tmp_path):
        assert len(listed(tmp_path, "api_key_id,team\nk,a\nk,a\n").rules) == 1
        text = 'api_key_id,user_id,team\nk,,a\n"two\nlines",,a\nx,y,a\nk,,b\nx,y,c\n'
        with pytest.raises(AssumptionError) as caught:
            listed(tmp_path, text)
        assert "lines 2 and 6 (api_key_id k: a, b)" in str(caught.value)
        assert "lines 5 and 7 (api_key_id x, user_id y: a, c)" in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "empty"),
            ("api_key,team\nk,a\n", 'line 1: unknown key "api_key". Did you mean "api_key_id"?'),
            ("api_key_id,tem\nk,a\n", "unknown key"),
            ("api_key_id,project\nk,a\n", "line 1: no column team"),
            ("api_key_id,api_key_id,team\nk,k,a\n", 'column "api_key_id" twice'),
            ("api_key_id,,team\nk,k,a\n", "a column without a name"),
            ("api_key_id,team\n,a\n", "line 2: no condition"),
            ("api_key_id,team\nk,\n", "line 2: neither team nor feature"),
            ("api_key_id,team\nk,a,b\n", "line 2: 3 cells for 2 columns"),
            ("project,team\n1.23457E+15,a\n", "what a spreadsheet makes of a long number"),
            ("project,team,shared\np,a,perhaps\n", 'line 2: shared = "perhaps"'),
            ('project,team\n"p"x,a\n', "line 2: cannot be read as CSV"),
        ],
    )
    def test_what_cannot_be_used_is_refused_by_line(self, tmp_path, text, says):
        with pytest.raises(AssumptionError) as caught:
            listed(tmp_path, text)
        assert says in str(caught.value)

    def test_another_encoding_is_named(self, tmp_path):
        with pytest.raises(AssumptionError, match='Save it as "CSV UTF-8"'):
            listed(tmp_path, "project,team\np,Büro\n", "cp1252")


class TestSharing:
    def test_defaults_and_exact_weights(self, tmp_path):
        assert config.allocation(tmp_path / "none.toml").method == "usage"
        file = toml(tmp_path, '[allocation]\nmethod = "fixed"\nweights = {a = 0.1, b = 0.2, c = 0.7}\n')
        assert sum(config.allocation(file).weights.values()) == 1

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ('methd = "even"', 'unknown key "methd". Did you mean "method"?'),
            ('method = "evn"', "allocation.method = 'evn': one of usage, even, fixed. Did you mean \"even\"?"),
            ("basis = 3", "allocation.basis = 3"),
            ('method = "fixed"', "allocation.weights: method"),
            ("weights = {a = 0.5, b = 0.6}", "allocation.weights: they sum to 1.1, not to 1"),
            ("weights = {a = 1.5, b = -0.5}", "allocation.weights.b = -0.5"),
            ("weights = {a = nan}", "allocation.weights.a = NaN"),
            ('weights = {a = "1"}', "allocation.weights.a = '1'"),
            ("weights = 1", "allocation.weights must be a table"),
            ("include_unallocated = 1", "include_unallocated = 1"),
        ],
    )
    def test_a_refusal_names_the_key(self, tmp_path, text, says):
        with pytest.raises(AssumptionError) as caught:
            config.allocation(toml(tmp_path, f"[allocation]\n{text}\n"))
        assert says in str(caught.value)
        assert "tenfold.toml" in str(caught.value)
