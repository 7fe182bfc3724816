// The module that pages/_ui/assets.py serves under this name.
import type { Typesetter } from "./formula.js";

export default function plugin(): Typesetter;
