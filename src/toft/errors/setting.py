"""Pure: errors about options and where they come from."""

from __future__ import annotations

from toft.errors.shape import ToftError


class SettingInvalid(ToftError):
    code = "TOFT-SETTING-INVALID"
    status = 400
    exit_status = 2
    message = "{origin}: `{value}` is not right for {name}: {cause}"
    remedy = "`toft config show` lists every option with what it takes"


class SettingUnknown(ToftError):
    code = "TOFT-SETTING-UNKNOWN"
    status = 400
    exit_status = 2
    message = "{origin}: there is no option `{name}`"
    remedy = "`toft config show` lists every option"
