// Module that pages/shared/server/static_files.py serves under this name.
import type { Typesetter } from "./formula.js";

export default function plugin(): Typesetter;
