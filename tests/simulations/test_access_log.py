"""Lines of access logs as requests: what each means, and that no line is a traceback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.errors import InputError
from apportion.simulations.access_log import Entry, Format, LineError, clock_ns, format_of, time_ns

SECOND = 1_000_000_000
COMBINED = '203.0.113.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a/b?q=1 HTTP/1.0" 200 2326 "http://x/" "Mozilla/4"'
T = 971_211_336 * SECOND
"""10 October 2000, 20:55:36 UTC, which is 13:55:36 in the zone -0700."""


def csv(header: str, location_from: str | None = None, key_from: str | None = None) -> Format:
    """The format of a CSV file with that header."""
    return format_of(header, location_from, key_from)


def test_a_combined_line_is_one_request_from_its_address() -> None:
    """The whole second it was logged in, in UTC; all requests have one key and cost 1 unless asked otherwise."""
    form = format_of(COMBINED, None, None)
    assert form.parse(COMBINED) == Entry(T, True, "203.0.113.7", "", 1)
    assert (form.by_column, form.has_header) == (False, False)


@pytest.mark.parametrize(
    "field,value",
    [
        ("address", "203.0.113.7"),
        ("user", "frank"),
        ("time", "10/Oct/2000:13:55:36 -0700"),
        ("method", "GET"),
        ("path", "/a/b"),
        ("status", "200"),
        ("bytes", "2326"),
        ("referer", "http://x/"),
        ("agent", "Mozilla/4"),
    ],
)
def test_each_field_of_a_combined_line_can_be_key_and_location(field: str, value: str) -> None:
    """`--key-from FIELD` and `--location-from FIELD`; the path is without its query."""
    form = format_of(COMBINED, field, field)
    assert form.parse(COMBINED) == Entry(T, True, value, value, 1)
    assert form.by_column


@pytest.mark.parametrize(
    "line",
    [
        '::1 - - [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.1" 200 -',
        '::1 - a b [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "an \\"agent\\"" 0.001',
        '::1 - - [10/Oct/2000:20:55:36 +0000] "\\x16\\x03" 400 0 "-" "-"',
        '::1 - - [10/Oct/2000:20:55:36 +0000] "" 408 0',
    ],
)
def test_lines_as_servers_really_write_them(line: str) -> None:
    """The common format, users with a space, escaped quotes, fields of one's own at the end, what was no HTTP."""
    assert format_of(line, None, None).parse(line).at_ns == T


@pytest.mark.parametrize(
    "text,seconds",
    [
        ("01/Jan/2027:00:00:00 +0000", 1_798_761_600),
        ("31/Dec/2026:23:59:59 +0000", 1_798_761_599),
        ("31/Dec/2026:19:00:00 -0500", 1_798_761_600),
        ("01/Jan/2027:05:30:00 +0530", 1_798_761_600),
        ("29/Feb/2028:00:00:00 +0000", 1_835_395_200),
    ],
)
def test_years_turn_and_zones_differ(text: str, seconds: int) -> None:
    """One instant, however it is written."""
    assert clock_ns(text) == seconds * SECOND


@pytest.mark.parametrize(
    "text,at_ns,whole",
    [
        ("1798761600", 1_798_761_600 * SECOND, True),
        ("1798761600.25", 1_798_761_600 * SECOND + 250_000_000, False),
        ("1798761600123", 1_798_761_600 * SECOND + 123_000_000, False),
        ("1798761600123456", 1_798_761_600 * SECOND + 123_456_000, False),
        ("1798761600123456789", 1_798_761_600 * SECOND + 123_456_789, False),
        ("2027-01-01T00:00:00Z", 1_798_761_600 * SECOND, True),
        ("2027-01-01 00:00:00", 1_798_761_600 * SECOND, True),
        ("2027-01-01T01:00:00.5+01:00", 1_798_761_600 * SECOND + 500_000_000, False),
        ("01/Jan/2027:00:00:00 +0000", 1_798_761_600 * SECOND, True),
    ],
)
def test_times_of_a_csv_file(text: str, at_ns: int, whole: bool) -> None:
    """Since 1970 in four units told apart by size, ISO 8601 in UTC unless it says, or as servers write it."""
    assert time_ns(text) == (at_ns, whole)


def test_columns_of_a_csv_file_by_name() -> None:
    """In any order; those that nobody asks for do not matter."""
    form = csv("Key, time ,status,location,cost")
    assert form.parse('"contoso, inc",1798761600,200,paris,3') == Entry(
        1_798_761_600 * SECOND, True, "paris", "contoso, inc", 3
    )
    assert form.by_column
    assert csv("time").parse("1798761600") == Entry(1_798_761_600 * SECOND, True, None, "", 1)


def test_a_csv_file_without_locations_is_divided_by_the_address() -> None:
    """As lines of the combined format are; another column can be named."""
    form = csv("time,client_ip,pop")
    assert form.parse("1798761600,::1,ams").location == "::1"
    assert not form.by_column
    named = csv("time,client_ip,pop", location_from="pop", key_from="client_ip")
    assert named.parse("1798761600,::1,ams")[2:4] == ("ams", "::1")
    assert named.by_column


@pytest.mark.parametrize(
    "header,location_from,key_from,said",
    [
        ("when,location", None, None, "has no column `time`"),
        ("time,pop", "location", None, "--location-from: found 'location', which there is none of; there is"),
        ("time,tenant", None, "tenent", "did you mean `tenant`?"),
        (COMBINED, None, "paths", "did you mean `path`?"),
    ],
)
def test_a_column_that_is_not_there_is_named(
    header: str, location_from: str | None, key_from: str | None, said: str
) -> None:
    """With the nearest that is."""
    with pytest.raises(InputError) as error:
        format_of(header, location_from, key_from)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "header,line,said",
    [
        ("time,cost", "1798761600", "has 1 columns, the header has 2"),
        ("time,cost", "1798761600,-1", "has the cost '-1'"),
        ("time,cost", "1798761600,99999999999999999999", "has the cost"),
        ("time,cost", "yesterday,1", "has the time 'yesterday'"),
        ("time,cost", '1798761600,"1', "is not a line of CSV"),
        (COMBINED, "GET / HTTP/1.1", "is not of the combined format"),
        (COMBINED, COMBINED.replace("Oct", "Okt"), "has the time '10/Okt/2000:13:55:36 -0700'"),
        (COMBINED, COMBINED.replace("13:55", "25:55"), "hour must be in 0..23"),
        (COMBINED, COMBINED.replace("10/Oct", "31/Jun"), "has the time"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(header: str, line: str, said: str) -> None:
    """What was found, and what is meant."""
    with pytest.raises(LineError) as error:
        format_of(header, None, None).parse(line)
    assert said in str(error.value)


HEADERS = st.sampled_from(["time", "time,location,key,cost", "cost,time,address", COMBINED])
NEARLY = st.lists(st.sampled_from([*'[]",:/-+ \\.0123456789', "10/Oct/2000", "13:55:36", "GET", "\0", "\ud800"])).map(
    "".join
)


@given(HEADERS, st.one_of(st.text(), NEARLY))
def test_no_line_is_a_traceback(header: str, line: str) -> None:
    """Any text is a request or a LineError."""
    form = format_of(header, None, None)
    try:
        entry = form.parse(line)
    except LineError:
        return
    assert entry.cost >= 0


@given(st.one_of(st.text(), NEARLY))
def test_no_first_line_is_a_traceback(line: str) -> None:
    """Any text is the beginning of a log, or an error that says what is missing."""
    try:
        format_of(line, None, None)
    except InputError:
        return


@given(st.one_of(st.text(), NEARLY, st.from_regex(r"[0-9]{1,2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4}")))
def test_no_time_is_a_traceback(text: str) -> None:
    """Any text is a time or a LineError."""
    try:
        time_ns(text)
    except LineError:
        return
