"""Control of communication step lengths, and run statistics."""
