import { useEffect, useRef, useState, type RefObject } from "react";
import { clusterTime } from "../../kubernetes/time";
import type { MapHandle } from "./MapCanvas";

/** MapClock is the moment that a map shows, in seconds after T0. */
export interface MapClock {
  /** at is the moment as texts show it, which advances once a second. */
  at: number;
  isLive: boolean;
  /** speed of playing; 0 if it stands. */
  speed: number;
  /** end is the latest moment that can be shown. */
  end: number;
  goTo: (at: number) => void;
  goLive: () => void;
  play: (speed: number) => void;
}

interface ClockSettings {
  /** t0 in Unix milliseconds; absent before it is known. */
  t0: number | undefined;
  /** live: the run goes on. */
  live: boolean;
  /** duration of the run, or of its tracks, in seconds. */
  duration: number;
  map: RefObject<MapHandle | null>;
  /** begin is the moment with which the map begins; without it, it follows the run. */
  begin?: number | undefined;
}

const tickMilliseconds = 100;

// Texts, and the links, follow less often than the nodes, however fast the run is played.
const shownMilliseconds = 1000;

/** momentAfter some time of playing; it ends with the run. */
export function momentAfter(from: number, seconds: number, speed: number, end: number): number {
  return Math.min(end, Math.max(0, from + seconds * speed));
}

/** useMapClock moves a map: with the run while it goes on, else as the user plays it. */
export function useMapClock({ t0, live, duration, map, begin }: ClockSettings): MapClock {
  const [follows, setFollows] = useState(begin === undefined);
  const [speed, setSpeed] = useState(0);
  const [at, setAt] = useState(begin ?? 0);
  const [end, setEnd] = useState(duration);
  const exact = useRef(begin ?? 0);
  const isLive = live && follows && t0 !== undefined;

  useEffect(() => {
    let last = clusterTime();
    let shown = 0;
    const tick = () => {
      const now = clusterTime();
      const latest = live && t0 !== undefined ? Math.max(0, (now - t0) / 1000) : duration;
      exact.current = isLive ? latest : momentAfter(exact.current, (now - last) / 1000, speed, latest);
      last = now;
      map.current?.setTime(exact.current);
      const hasEnded = !isLive && exact.current >= latest;
      if (now - shown < shownMilliseconds && !hasEnded) return;
      shown = now;
      setAt(exact.current);
      setEnd(latest);
      if (!hasEnded || speed === 0) return;
      setSpeed(0);
      setFollows(true); // who has caught up with the run goes on with it
    };
    tick();
    if (!isLive && speed === 0) return;
    const timer = setInterval(tick, tickMilliseconds);
    return () => {
      clearInterval(timer);
    };
  }, [isLive, live, t0, duration, speed, map]);

  const goTo = (to: number) => {
    setFollows(false);
    setSpeed(0);
    exact.current = to;
    setAt(to);
    map.current?.setTime(to);
  };
  const goLive = () => {
    setFollows(true);
  };
  const play = (at: number) => {
    setFollows(false);
    setSpeed(at);
  };
  return { at, isLive, speed, end: Math.max(end, duration), goTo, goLive, play };
}
