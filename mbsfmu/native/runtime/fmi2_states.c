/* Saved states: the state of an instance, copied as a whole; serialized with the GUID before it. */

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetFMUstate)(fmi2Component component, fmi2FMUstate *saved) {
    WITH_INSTANCE;
    if (!*saved) *saved = malloc(sizeof(State));
    if (!*saved) return REFUSE("there is no memory for a saved state");
    memcpy(*saved, &instance->state, sizeof(State));
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetFMUstate)(fmi2Component component, fmi2FMUstate saved) {
    WITH_INSTANCE;
    if (!saved) return REFUSE("there is no saved state");
    memcpy(&instance->state, saved, sizeof(State));
    instance->known = NOTHING;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2FreeFMUstate)(fmi2Component component, fmi2FMUstate *saved) {
    WITH_INSTANCE;
    if (saved) {
        free(*saved);
        *saved = NULL;
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializedFMUstateSize)(fmi2Component component, fmi2FMUstate saved, size_t *size) {
    WITH_INSTANCE;
    (void)saved;
    *size = sizeof(MODEL_GUID) + sizeof(State);
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializeFMUstate)(
    fmi2Component component, fmi2FMUstate saved, fmi2Byte bytes[], size_t size
) {
    WITH_INSTANCE;
    if (!saved || size < sizeof(MODEL_GUID) + sizeof(State)) {
        return REFUSE("a saved state needs %u bytes", (unsigned)(sizeof(MODEL_GUID) + sizeof(State)));
    }
    memcpy(bytes, MODEL_GUID, sizeof(MODEL_GUID));
    memcpy(bytes + sizeof(MODEL_GUID), saved, sizeof(State));
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DeSerializeFMUstate)(
    fmi2Component component, const fmi2Byte bytes[], size_t size, fmi2FMUstate *saved
) {
    WITH_INSTANCE;
    if (size != sizeof(MODEL_GUID) + sizeof(State) || memcmp(bytes, MODEL_GUID, sizeof(MODEL_GUID)) != 0) {
        return REFUSE("these %u bytes are no saved state of this unit", (unsigned)size);
    }
    if (!*saved) *saved = malloc(sizeof(State));
    if (!*saved) return REFUSE("there is no memory for a saved state");
    memcpy(*saved, bytes + sizeof(MODEL_GUID), sizeof(State));
    return fmi2OK;
}
