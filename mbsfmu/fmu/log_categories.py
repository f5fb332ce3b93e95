"""Log categories that every unit declares."""

LOG_CATEGORIES = {
    "logStatusWarning": "What should be looked at.",
    "logStatusDiscard": "Steps that could not be made.",
    "logStatusError": "Calls that were refused, with the reason.",
    "logStatusFatal": "Failures after which the unit cannot be used.",
    "logAll": "Everything.",
}
