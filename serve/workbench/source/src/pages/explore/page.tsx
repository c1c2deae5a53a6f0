import { Empty } from "../../ui/states";

export default function ExplorePage() {
  return <div class="page"><div class="title"><h1>Explore</h1></div><Empty icon="graph" title="Nothing here yet" /></div>;
}
