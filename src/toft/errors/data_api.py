"""Pure: errors of a Data API that stands alone."""

from __future__ import annotations

from toft.errors.shape import ToftError


class DataApiSetting(ToftError):
    code = "TOFT-DATA-API-SETTING"
    status = 400
    exit_status = 2
    message = "{cause}"
    remedy = "`toft data-api --help` names the options; PGRST_ variables take what PostgREST takes"


class DataApiPlace(ToftError):
    code = "TOFT-DATA-API-PLACE"
    status = 409
    message = "cannot listen on {place}: {cause}"
    remedy = "choose another by `--port` and `--admin-port`, or end what listens there"


class DataApiDatabase(ToftError):
    code = "TOFT-DATA-API-DATABASE"
    status = 503
    message = "the database cannot be served: {cause}"
    remedy = "check user, password and host of `--db-uri`; the user must be allowed to log in from here"
