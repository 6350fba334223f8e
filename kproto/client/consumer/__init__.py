"""From fetched bytes to records: `consumer` is the face, `partition` decides, `visible` reads."""
