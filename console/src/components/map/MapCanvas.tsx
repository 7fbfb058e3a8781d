import { ActionIcon, useComputedColorScheme } from "@mantine/core";
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState, type KeyboardEvent, type Ref } from "react";
import { useSession } from "../../app/session";
import { attach, keyed, type Gestures } from "./gestures";
import style from "./map.module.css";
import { Painter } from "./Painter";
import type { Place } from "./projection";
import type { MapLink, Scene } from "./scene";
import { panned, zoomed } from "./view";

/** What others may do with a map that is shown. */
export interface MapHandle {
  /** setTime in seconds after T0, as often as one likes. */
  setTime(at: number): void;
  /** show brings a place into the middle. */
  show(place: Place): void;
  /** placeInTheMiddle of what is shown. */
  placeInTheMiddle(): Place;
}

export interface MapCanvasProps {
  scene: Scene;
  /** label is the text in place of the picture. */
  label: string;
  height?: number | string;
  ref?: Ref<MapHandle>;
  onSelect?: (name: string | undefined) => void;
  onSelectLink?: (link: MapLink) => void;
  /** hintOf what is under the pointer. */
  hintOf?: (node: string | undefined, link: MapLink | undefined) => string | undefined;
  /** onPlace is set while the next click says where something is to be. */
  onPlace?: ((place: Place) => void) | undefined;
  onMoveHandle?: (id: string, place: Place, isDropped: boolean) => void;
  onSelectHandle?: (id: string) => void;
}

const backgroundURL = "/console/v1/background";

/** MapCanvas draws a scene. It can be moved and enlarged by pointer, wheel, two fingers and keys. */
export function MapCanvas(props: MapCanvasProps) {
  const { scene, label, height = 480, ref } = props;
  const box = useRef<HTMLDivElement>(null);
  const ground = useRef<HTMLCanvasElement>(null);
  const moving = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter>(undefined);
  const [hint, setHint] = useState<string>();
  const [attribution, setAttribution] = useState("");
  const scheme = useComputedColorScheme("light");
  const latest = useRef(props);

  useLayoutEffect(() => {
    latest.current = props;
  });
  useLayoutEffect(() => {
    if (!box.current || !ground.current || !moving.current) return;
    const made = new Painter(ground.current, moving.current);
    painter.current = made;
    const resize = ([entry]: { contentRect: { width: number; height: number } }[]) => {
      if (entry) made.resize(entry.contentRect.width, entry.contentRect.height);
    };
    resize([{ contentRect: { width: box.current.clientWidth, height: box.current.clientHeight } }]);
    const observer = new ResizeObserver(resize);
    observer.observe(box.current);
    const detach = attach(moving.current, gesturesOf(made, latest, setHint));
    return () => {
      detach();
      observer.disconnect();
      made.end();
    };
  }, []);
  const { data: session } = useSession();
  const hasBackground = session?.background === true;
  useEffect(() => {
    if (!hasBackground) return;
    let isShown = true;
    let leave: (() => void) | undefined;
    void import("./background").then(({ backgroundAt }) => {
      if (!isShown) return;
      const background = backgroundAt(backgroundURL);
      const tell = () => { setAttribution(background.attribution); };
      leave = background.subscribe(tell);
      tell();
      painter.current?.setBackground(background);
    });
    return () => {
      isShown = false;
      leave?.();
      painter.current?.setBackground(undefined);
    };
  }, [hasBackground]);
  useEffect(() => {
    painter.current?.setScheme(scheme, Math.min(window.devicePixelRatio || 1, 2));
  }, [scheme]);
  useEffect(() => {
    painter.current?.setScene(scene);
  }, [scene]);
  useImperativeHandle(ref, () => ({
    setTime: (at) => painter.current?.setTime(at),
    show: (place) => painter.current?.show(place),
    placeInTheMiddle: () => painter.current?.placeInTheMiddle() ?? { latitude: 0, longitude: 0 },
  }));

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !painter.current) return;
    if (event.target === box.current && keyed(event.key, viewOf(painter.current))) event.preventDefault();
  };
  return (
    <div
      ref={box}
      className={style.map}
      style={{ height }}
      role="application"
      aria-label="Map. Arrow keys move it, plus and minus enlarge it, 0 shows all. The list of nodes says the same in words."
      tabIndex={0}
      onKeyDown={onKeyDown}
      data-map
    >
      <canvas ref={ground} aria-hidden />
      <canvas ref={moving} role="img" aria-label={label} className={`${style.moving ?? ""} ${props.onPlace ? (style.placing ?? "") : ""}`} />
      <MapButtons
        act={(how) => {
          if (painter.current) how(viewOf(painter.current));
        }}
      />
      {hasBackground && attribution && !scene.inCircle && <div className={style.attribution}>{attribution}</div>}
      {hint && (
        <div className={style.hint} role="status">
          {hint}
        </div>
      )}
    </div>
  );
}

function MapButtons({ act }: { act: (how: (view: ReturnType<typeof viewOf>) => void) => void }) {
  const buttons = [
    { label: "Enlarge the map", sign: "+", key: "+" },
    { label: "Reduce the map", sign: "−", key: "-" },
    { label: "Show all of the map", sign: <Corners />, key: "0" },
  ];
  return (
    <div className={style.buttons}>
      {buttons.map(({ label, sign, key }) => (
        <ActionIcon
          key={key}
          variant="default"
          size="lg"
          aria-label={label}
          onClick={() => {
            act((view) => keyed(key, view));
          }}
        >
          {sign}
        </ActionIcon>
      ))}
    </div>
  );
}

function Corners() {
  return (
    <svg width={14} height={14} viewBox="0 0 14 14" fill="none" stroke="currentColor" strokeWidth={2} aria-hidden>
      <path d="M1 5V1h4M9 1h4v4M13 9v4H9M5 13H1V9" />
    </svg>
  );
}

function viewOf(painter: Painter): Pick<Gestures, "pan" | "zoom" | "fit"> {
  return {
    pan: (dx, dy) => {
      painter.change((view) => panned(view, dx, dy));
    },
    zoom: (factor, at) => {
      painter.change((view) => zoomed(view, factor, at));
    },
    fit: () => {
      painter.fit();
    },
  };
}

function gesturesOf(painter: Painter, latest: { current: MapCanvasProps }, setHint: (hint: string | undefined) => void): Gestures {
  let grabbed: string | undefined;
  return {
    ...viewOf(painter),
    point: (at) => {
      const node = at && painter.nodeAt(at);
      const link = at && !node ? painter.linkAt(at) : undefined;
      painter.hover(node, link);
      setHint(node || link ? latest.current.hintOf?.(node, link) : undefined);
    },
    click: (at) => {
      const { onPlace, onSelect, onSelectLink, onSelectHandle } = latest.current;
      const handle = painter.handleAt(at);
      const node = painter.nodeAt(at);
      const link = node ? undefined : painter.linkAt(at);
      if (onPlace) onPlace(painter.placeOf(at));
      else if (handle && onSelectHandle) onSelectHandle(handle);
      else if (link && onSelectLink) onSelectLink(link);
      else onSelect?.(node);
    },
    grab: (at) => {
      painter.hold();
      grabbed = latest.current.onMoveHandle && !latest.current.onPlace ? painter.handleAt(at) : undefined;
      return grabbed !== undefined;
    },
    drag: (at) => {
      if (grabbed) latest.current.onMoveHandle?.(grabbed, painter.placeOf(at), false);
    },
    drop: (at) => {
      if (grabbed) latest.current.onMoveHandle?.(grabbed, painter.placeOf(at), true);
      grabbed = undefined;
    },
  };
}
