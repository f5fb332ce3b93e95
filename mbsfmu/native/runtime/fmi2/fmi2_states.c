/* Saved states: FMI 2.0 calls them FMU states. */

EXPORT fmi2Status NAMED(fmi2GetFMUstate)(fmi2Component handle, fmi2FMUstate *saved) {
    WITH_COMPONENT;
    return save_state(component, saved);
}

EXPORT fmi2Status NAMED(fmi2SetFMUstate)(fmi2Component handle, fmi2FMUstate saved) {
    WITH_COMPONENT;
    return restore_state(component, saved);
}

EXPORT fmi2Status NAMED(fmi2FreeFMUstate)(fmi2Component handle, fmi2FMUstate *saved) {
    WITH_COMPONENT;
    (void)component;
    return free_state(saved);
}

EXPORT fmi2Status NAMED(fmi2SerializedFMUstateSize)(fmi2Component handle, fmi2FMUstate saved, size_t *size) {
    WITH_COMPONENT;
    (void)saved;
    return give_state_size(component, size);
}

EXPORT fmi2Status NAMED(fmi2SerializeFMUstate)(
    fmi2Component handle, fmi2FMUstate saved, fmi2Byte bytes[], size_t size
) {
    WITH_COMPONENT;
    return serialize_state(component, saved, bytes, size);
}

EXPORT fmi2Status NAMED(fmi2DeSerializeFMUstate)(
    fmi2Component handle, const fmi2Byte bytes[], size_t size, fmi2FMUstate *saved
) {
    WITH_COMPONENT;
    return deserialize_state(component, bytes, size, saved);
}
