import io
import json
import logging

import pytest

from dmlcore.monitoring import logs


@pytest.fixture
def written():
    log, stream = logging.getLogger("dmlcore"), io.StringIO()
    handler, before = logging.StreamHandler(stream), (log.level, log.propagate)
    log.addHandler(handler)
    yield stream
    log.removeHandler(handler)
    log.setLevel(before[0])
    log.propagate = before[1]


def test_a_line_is_one_object_whatever_it_holds(written, monkeypatch):
    monkeypatch.setenv("DML_LOG", "json")
    logs.configure_server_logs()
    try:
        raise ValueError("Größe\n\u2028")
    except ValueError:
        logging.getLogger("dmlcore.somewhere").exception("run %s failed:\n%s", "a-1", '"why"')
    (line,) = written.getvalue().splitlines() if "\u2028" not in written.getvalue() else [written.getvalue()]
    record = json.loads(line)
    assert record["message"] == 'run a-1 failed:\n"why"'
    assert (record["level"], record["logger"]) == ("ERROR", "dmlcore.somewhere")
    assert "ValueError: Größe" in record["error"]
    assert record["time"].endswith("+00:00")


def test_unasked_nothing_changes(written, monkeypatch):
    monkeypatch.delenv("DML_LOG", raising=False)
    logs.configure_server_logs()
    logging.getLogger("dmlcore").warning("as it is")
    assert written.getvalue() == "as it is\n"
