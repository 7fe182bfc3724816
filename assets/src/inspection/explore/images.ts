// Images by address, fetched once, as long as they are among those used most recently.
const KEPT = 600;

// `arrived` is called whenever another image can be drawn.
export class ImageCache {
  private readonly arrived: () => void;
  private readonly ready = new WeakSet<HTMLImageElement>();
  private readonly kept = new Map<string, HTMLImageElement>();
  constructor(arrived: () => void) {
    this.arrived = arrived;
  }

  // Return an image, or null until it has arrived.
  get(address: string) {
    const image = this.kept.get(address) ?? this.load(address);
    this.kept.delete(address); // mark as most recently used
    this.kept.set(address, image);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(oldest);
    }
    return this.ready.has(image) ? image : null;
  }

  private load(address: string) {
    const image = new Image();
    image.onload = () => {
      this.ready.add(image);
      this.arrived();
    };
    image.src = address;
    return image;
  }
}
