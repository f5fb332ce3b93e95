"""Log categories that every FMU declares."""

LOG_CATEGORIES = {
    "logStatusWarning": "What should be looked at.",
    "logStatusDiscard": "Steps that could not be made.",
    "logStatusError": "Calls that were refused, with the reason.",
    "logStatusFatal": "Failures after which the FMU cannot be used.",
    "logRemark": "What happened in the run, as an end stop that was reached.",
    "logAll": "Everything.",
}
