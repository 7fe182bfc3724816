// The page that components belong to.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Explore } from "./explore.tsx";

export const MapContext = createContext<Explore>(null as unknown as Explore);

// Return the page of a component.
export const useMap = () => useContext(MapContext);
