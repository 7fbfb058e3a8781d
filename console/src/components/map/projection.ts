/** A place on the earth, in degrees and metres above the sea. */
export interface Place {
  latitude: number;
  longitude: number;
  altitude?: number;
}

/** A point of the map, in metres east and north of its centre; or in pixels right of and below the upper left corner. */
export interface Point {
  x: number;
  y: number;
}

/** Bounds are the least rectangle, with sides along the axes, about some points. */
export interface Bounds {
  west: number;
  south: number;
  east: number;
  north: number;
}

/** A projection turns places into metres east and north of its centre, and back. */
export interface Projection {
  readonly centre: Place;
  toMetres: (place: Place) => Point;
  toPlace: (point: Point) => Place;
}

// WGS 84: the equator's radius in metres, and the square of the eccentricity.
const equator = 6_378_137;
const eccentricity2 = 6.694_379_990_14e-3;

const radians = Math.PI / 180;

/** around brings an angle in degrees into -180 to 180, so that ways over the date line are short. */
export function around(degrees: number): number {
  return degrees - 360 * Math.round(degrees / 360);
}

/**
 * projectionAbout a centre is equirectangular, with the earth's radii there.
 * Over 100 km it is wrong by less than 1 %, which no eye sees.
 */
export function projectionAbout(centre: Place): Projection {
  const sine = Math.sin(centre.latitude * radians);
  const denominator = 1 - eccentricity2 * sine * sine;
  const north = (radians * equator * (1 - eccentricity2)) / denominator ** 1.5;
  // At a pole all longitudes are one.
  const east = Math.max((radians * equator * Math.cos(centre.latitude * radians)) / Math.sqrt(denominator), 1e-6);
  return {
    centre,
    toMetres: (place) => ({ x: around(place.longitude - centre.longitude) * east, y: (place.latitude - centre.latitude) * north }),
    toPlace: (point) => ({ latitude: centre.latitude + point.y / north, longitude: around(centre.longitude + point.x / east) }),
  };
}

/** centreOf places is in the middle between their extremes; undefined without any. */
export function centreOf(places: Iterable<Place>): Place | undefined {
  let first: Place | undefined;
  let bounds: Bounds | undefined;
  for (const place of places) {
    first ??= place;
    bounds = extended(bounds, { x: around(place.longitude - first.longitude), y: place.latitude });
  }
  if (!first || !bounds) return undefined;
  return { latitude: (bounds.south + bounds.north) / 2, longitude: around(first.longitude + (bounds.west + bounds.east) / 2) };
}

/** extended bounds hold one more point. */
export function extended(bounds: Bounds | undefined, point: Point): Bounds {
  if (!bounds) return { west: point.x, east: point.x, south: point.y, north: point.y };
  return {
    west: Math.min(bounds.west, point.x),
    east: Math.max(bounds.east, point.x),
    south: Math.min(bounds.south, point.y),
    north: Math.max(bounds.north, point.y),
  };
}

/** metresBetween two places, over the ground. */
export function metresBetween(a: Place, b: Place): number {
  const middle = { latitude: (a.latitude + b.latitude) / 2, longitude: a.longitude };
  const projection = projectionAbout(middle);
  const [from, to] = [projection.toMetres(a), projection.toMetres(b)];
  return Math.hypot(to.x - from.x, to.y - from.y);
}
