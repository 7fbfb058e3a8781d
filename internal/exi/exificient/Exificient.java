import com.siemens.ct.exi.core.EXIFactory;
import com.siemens.ct.exi.core.FidelityOptions;
import com.siemens.ct.exi.core.helpers.DefaultEXIFactory;
import com.siemens.ct.exi.grammars.GrammarFactory;
import com.siemens.ct.exi.main.api.sax.EXIResult;
import com.siemens.ct.exi.main.api.sax.EXISource;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.xml.parsers.SAXParserFactory;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXSource;
import javax.xml.transform.stream.StreamResult;
import org.xml.sax.InputSource;
import org.xml.sax.XMLReader;

/**
 * Exificient FOLDER [SCHEMA]: encodes each NAME.xml of a folder into NAME.theirs, and decodes each NAME.ours into NAME.decoded. What fails has its
 * reason as its content.
 */
public class Exificient {
  public static void main(String[] arguments) throws Exception {
    EXIFactory factory = DefaultEXIFactory.newInstance();
    if (arguments.length > 1) {
      factory.setGrammars(GrammarFactory.newInstance().createGrammars(arguments[1]));
      factory.setFidelityOptions(FidelityOptions.createStrict());
    }
    for (File file : new File(arguments[0]).listFiles()) {
      Path path = file.toPath();
      String name = file.getName();
      if (name.endsWith(".xml")) {
        Files.write(path.resolveSibling(name.replace(".xml", ".theirs")), encode(factory, path));
      } else if (name.endsWith(".ours")) {
        Files.write(path.resolveSibling(name.replace(".ours", ".decoded")), decode(factory, path));
      }
    }
  }

  static byte[] encode(EXIFactory factory, Path path) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (InputStream in = Files.newInputStream(path)) {
      EXIResult result = new EXIResult(factory);
      result.setOutputStream(out);
      SAXParserFactory parsers = SAXParserFactory.newInstance();
      parsers.setNamespaceAware(true);
      XMLReader reader = parsers.newSAXParser().getXMLReader();
      reader.setContentHandler(result.getHandler());
      reader.parse(new InputSource(in));
    } catch (Exception e) {
      return e.toString().getBytes("UTF-8");
    }
    return out.toByteArray();
  }

  static byte[] decode(EXIFactory factory, Path path) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (InputStream in = Files.newInputStream(path)) {
      EXISource source = new EXISource(factory);
      source.setInputSource(new InputSource(in));
      TransformerFactory.newInstance().newTransformer().transform(new SAXSource(source.getXMLReader(), source.getInputSource()), new StreamResult(out));
    } catch (Exception e) {
      return ("<unreadable>" + e.getMessage().replace("<", "(") + "</unreadable>").getBytes("UTF-8");
    }
    return out.toByteArray();
  }
}
