"""Files of data sets: locations, lists, archives, decoded images, downloads."""
