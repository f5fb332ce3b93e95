/* Functions of a binary have the standard's names. The sources of an FMU have a file of this name that gives a prefix. */
