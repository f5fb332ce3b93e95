/* Saved states: FMI 3.0 calls them FMU states. */

EXPORT fmi3Status NAMED(fmi3GetFMUState)(fmi3Instance handle, fmi3FMUState *saved) {
    WITH_INSTANCE;
    return save_state(component, saved);
}

EXPORT fmi3Status NAMED(fmi3SetFMUState)(fmi3Instance handle, fmi3FMUState saved) {
    WITH_INSTANCE;
    return restore_state(component, saved);
}

EXPORT fmi3Status NAMED(fmi3FreeFMUState)(fmi3Instance handle, fmi3FMUState *saved) {
    WITH_INSTANCE;
    (void)component;
    return free_state(saved);
}

EXPORT fmi3Status NAMED(fmi3SerializedFMUStateSize)(fmi3Instance handle, fmi3FMUState saved, size_t *size) {
    WITH_INSTANCE;
    (void)saved;
    return give_state_size(component, size);
}

EXPORT fmi3Status NAMED(fmi3SerializeFMUState)(
    fmi3Instance handle, fmi3FMUState saved, fmi3Byte bytes[], size_t size
) {
    WITH_INSTANCE;
    return serialize_state(component, saved, (char *)bytes, size);
}

EXPORT fmi3Status NAMED(fmi3DeserializeFMUState)(
    fmi3Instance handle, const fmi3Byte bytes[], size_t size, fmi3FMUState *saved
) {
    WITH_INSTANCE;
    return deserialize_state(component, (const char *)bytes, size, saved);
}
