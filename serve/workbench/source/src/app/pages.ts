/** The pages of the navigation. Each is loaded when it is first opened. */
import type { ComponentType } from "preact";
import type { IconName } from "../ui/icons";

export interface PageEntry { id: string; title: string; icon: IconName; load: () => Promise<{ default: ComponentType }>; hidden?: boolean }

export const PAGES: readonly PageEntry[] = [
  { id: "query", title: "Query", icon: "query", load: () => import("../pages/query/page") },
  { id: "explore", title: "Explore", icon: "graph", load: () => import("../pages/explore/page") },
  { id: "search", title: "Search", icon: "search", load: () => import("../pages/search/page") },
  { id: "live", title: "Live", icon: "live", load: () => import("../pages/live/page") },
  { id: "changes", title: "Changes", icon: "history", load: () => import("../pages/changes/page") },
  { id: "data", title: "Data", icon: "data", load: () => import("../pages/data/page") },
  { id: "service", title: "Service", icon: "service", load: () => import("../pages/service/page") },
  { id: "graphql", title: "GraphiQL", icon: "service", load: () => import("../pages/service/graphql"), hidden: true },
  { id: "reference", title: "API reference", icon: "service", load: () => import("../pages/service/reference"), hidden: true },
  { id: "about", title: "About", icon: "info", load: () => import("../pages/about/page"), hidden: true },
];
