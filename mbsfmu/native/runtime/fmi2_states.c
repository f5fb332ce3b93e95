/* Saved states: FMI 2.0 calls them FMU states. */

#define NEED_STATE(saved) \
    if (!(saved)) return refuse(component, "there is no saved state")
#define NEED_PLACE(saved) \
    if (!(saved)) return refuse(component, "there is no place for a saved state")

EXPORT fmi2Status NAMED(fmi2GetFMUstate)(fmi2Component handle, fmi2FMUstate *saved) {
    WITH_COMPONENT;
    NEED_PLACE(saved);
    return status_of(unit_functions.save(component->instance, saved));
}

EXPORT fmi2Status NAMED(fmi2SetFMUstate)(fmi2Component handle, fmi2FMUstate saved) {
    WITH_COMPONENT;
    NEED_STATE(saved);
    return status_of(unit_functions.restore(component->instance, saved));
}

EXPORT fmi2Status NAMED(fmi2FreeFMUstate)(fmi2Component handle, fmi2FMUstate *saved) {
    WITH_COMPONENT;
    if (saved) {
        unit_functions.release(*saved);
        *saved = NULL;
    }
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2SerializedFMUstateSize)(fmi2Component handle, fmi2FMUstate saved, size_t *size) {
    WITH_COMPONENT;
    (void)saved;
    NEED(size, "the size of a saved state");
    *size = unit_functions.saved_size;
    return fmi2OK;
}

EXPORT fmi2Status NAMED(fmi2SerializeFMUstate)(
    fmi2Component handle, fmi2FMUstate saved, fmi2Byte bytes[], size_t size
) {
    WITH_COMPONENT;
    NEED_STATE(saved);
    NEED(bytes, "the bytes of a saved state");
    return status_of(unit_functions.serialize(component->instance, saved, bytes, size));
}

EXPORT fmi2Status NAMED(fmi2DeSerializeFMUstate)(
    fmi2Component handle, const fmi2Byte bytes[], size_t size, fmi2FMUstate *saved
) {
    WITH_COMPONENT;
    NEED(bytes, "the bytes of a saved state");
    NEED_PLACE(saved);
    return status_of(unit_functions.deserialize(component->instance, bytes, size, saved));
}
