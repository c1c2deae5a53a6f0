import { Empty } from "../../ui/states";

export default function SearchPage() {
  return <div class="page"><div class="title"><h1>Search</h1></div><Empty icon="search" title="Nothing here yet" /></div>;
}
